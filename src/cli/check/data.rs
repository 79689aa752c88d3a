//! `dpm check --data`: which rows are missing or out of bounds, for the curator.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::privacy::{Form, Places, Survey};

/// Stands above the lines about rows, and in their JSON.
pub(super) const WARNING: &str = "NOT PRIVATE: what follows is about single private rows, and no guarantee covers it; it is for the curator of the data only";

/// How many places of one kind are shown without `--all`.
pub(super) const PLACES_SHOWN: usize = 10;

pub(super) fn json_of(path: &Value, survey: &Survey) -> Value {
    let places = |places: &Places| places_json(survey, places);
    let columns: Vec<Value> = survey
        .columns
        .iter()
        .map(|c| {
            json!({
                "name": c.name,
                "header": c.header,
                "expected": c.expected,
                "clamped_below": places(&c.below),
                "clamped_above": places(&c.above),
                "missing": places(&c.missing),
                "bad": places(&c.bad),
            })
        })
        .collect();
    json!({
        "warning": WARNING,
        "path": path,
        "files": survey.files.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "records": survey.records,
        "unit": survey.unit.as_ref().map(|unit| json!({
            "column": unit.header,
            "units": unit.count,
            "most_rows_of_a_unit": unit.most_rows,
            "bad": places(&unit.bad),
        })),
        "multiline_records": places(&survey.multiline),
        "quotes_out_of_place_or_too_long": places(&survey.torn),
        "wrong_number_of_fields": places(&survey.fields),
        "bad_rows": places(&survey.bad_rows),
        "missing_rows": places(&survey.missing_rows),
        "columns": columns,
    })
}

/// Positions under `lines` or `rows`, and, of several files, the number of each one's file.
fn places_json(survey: &Survey, places: &Places) -> Value {
    let positions: Vec<u64> = places.first.iter().map(|place| place.position).collect();
    let mut json = json!({ "count": places.count });
    json[counted(survey.form)] = json!(positions);
    if survey.files.len() > 1 {
        json["files"] = places.first.iter().map(|place| json!(place.file)).collect();
    }
    json
}

fn counted(form: Form) -> &'static str {
    match form {
        Form::Lines => "lines",
        Form::Rows => "rows",
    }
}

pub(super) fn describe(paths: &[PathBuf], survey: &Survey) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let files = match survey.files.len() {
        1 => String::new(),
        n => format!(" in {n} files"),
    };
    let mut lines = vec![
        WARNING.to_string(),
        format!(
            "{}: {} record{}{files}",
            paths.join(" "),
            survey.records,
            plural(survey.records)
        ),
    ];
    let push = |lines: &mut Vec<String>, what: &str, places: &Places| {
        lines.extend(places_line(survey, what, places));
    };
    if let Some(unit) = &survey.unit {
        lines.push(format!(
            "  {} unit{} by `{}`, of at most {} record{}",
            unit.count,
            plural(unit.count),
            unit.header,
            unit.most_rows,
            plural(unit.most_rows)
        ));
        push(&mut lines, "without a unit (bad)", &unit.bad);
    }
    for (what, places) in [
        (
            "that span lines by their quotation marks, which takes --multiline-records",
            &survey.multiline,
        ),
        (
            "with quotation marks out of place, or too long (bad)",
            &survey.torn,
        ),
        ("with the wrong number of fields (bad)", &survey.fields),
        (
            "that cannot be read, for any reason (bad)",
            &survey.bad_rows,
        ),
        (
            "with a value missing, which add nothing",
            &survey.missing_rows,
        ),
    ] {
        push(&mut lines, what, places);
    }
    for column in &survey.columns {
        let kinds = [
            ("below the lower bound, clamped", &column.below),
            ("above the upper bound, clamped", &column.above),
            ("missing", &column.missing),
            ("bad", &column.bad),
        ];
        if kinds.iter().all(|(_, places)| places.count == 0) {
            continue;
        }
        lines.push(format!(
            "  column `{}`, expected {}",
            column.header, column.expected
        ));
        for (what, places) in kinds {
            push(&mut lines, &format!("  {what}"), places);
        }
    }
    let is_clean = |c: &crate::privacy::ColumnSurvey| {
        c.below.count + c.above.count + c.missing.count + c.bad.count == 0
    };
    if survey.bad_rows.count == 0 && survey.columns.iter().all(is_clean) {
        lines.push("  all values are there and within their bounds".to_string());
    }
    lines.join("\n") + "\n"
}

fn places_line(survey: &Survey, what: &str, places: &Places) -> Option<String> {
    if places.count == 0 {
        return None;
    }
    let mut shown = Vec::new();
    for of_file in places.first.chunk_by(|a, b| a.file == b.file) {
        let positions = of_file.iter().map(|place| place.position.to_string());
        let positions = positions.collect::<Vec<_>>().join(", ");
        shown.push(match survey.files.len() {
            1 => positions,
            _ => format!("{positions} of {}", survey.files[of_file[0].file]),
        });
    }
    let more = places.count - places.first.len() as u64;
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more (--all lists them)"),
    };
    Some(format!(
        "  {:>8} {what}: {}{} {}{more}",
        places.count,
        survey.form.name(),
        plural(places.count),
        shown.join("; ")
    ))
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
