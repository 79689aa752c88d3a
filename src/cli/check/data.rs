//! `dpm check --data`: which rows are missing or out of bounds, for the curator.

use serde_json::{Value, json};
use std::path::Path;

use crate::privacy::{Places, Survey};

/// Stands above the lines about rows, and in their JSON.
pub(super) const WARNING: &str = "NOT PRIVATE: what follows is about single private rows, and no guarantee covers it; it is for the curator of the data only";

/// How many line numbers of one kind are shown without `--all`.
pub(super) const LINES_SHOWN: usize = 10;

pub(super) fn json_of(path: &Path, survey: &Survey) -> Value {
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
        "path": path.display().to_string(),
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

fn places(places: &Places) -> Value {
    json!({ "count": places.count, "lines": places.lines })
}

pub(super) fn describe(path: &Path, survey: &Survey) -> String {
    let mut lines = vec![
        WARNING.to_string(),
        format!(
            "{}: {} record{}",
            path.display(),
            survey.records,
            plural(survey.records)
        ),
    ];
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

fn push(lines: &mut Vec<String>, what: &str, places: &Places) {
    if places.count == 0 {
        return;
    }
    let shown: Vec<String> = places.lines.iter().map(u64::to_string).collect();
    let more = places.count - places.lines.len() as u64;
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more (--all lists them)"),
    };
    lines.push(format!(
        "  {:>8} {what}: line{} {}{more}",
        places.count,
        plural(places.count),
        shown.join(", ")
    ));
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
