//! The program's words for what the library says: flags for settings, figures of epsilon, how to resume.

use std::path::Path;

use crate::sampler::Setting;

/// The flag of an argument of that name.
pub(super) fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// Arguments that the library calls by the same names, in addition to the settings of samplers.
const SHARED: [&str; 12] = [
    "epsilon",
    "delta",
    "relation",
    "chains",
    "num_samples",
    "num_warmup",
    "iterations",
    "temperature",
    "thin",
    "init",
    "unit",
    "insecure_noise_seed",
];

/// Settings of how data are read, and of what is protected. Texts name them with their values: `on_bad_rows skip`.
const OF_DATA: [&str; 5] = [
    "columns",
    "on_bad_rows",
    "multiline_records",
    "max_memory",
    "spill_dir",
];
const OF_TERMS: [&str; 2] = ["relation", "unit"];

/// A text of the library, which calls a setting `step_size`, in the program's words: --step-size.
/// Not for texts that quote names of the user's.
pub(super) fn in_flags(text: &str) -> String {
    let settings = Setting::ALL.iter().map(|setting| setting.name());
    let text = in_flags_of_terms(text);
    settings.chain(SHARED).fold(text, |text, name| {
        text.replace(&format!("`{name}`"), &flag(name))
    })
}

/// The same of a text about data, which may quote names of columns: only these few become flags.
pub(super) fn in_flags_of_data(text: &str) -> String {
    let text = with_values(text, &OF_DATA);
    OF_DATA.iter().fold(text, |text, name| {
        text.replace(&format!("`{name}`"), &format!("`{}`", flag(name)))
    })
}

/// The same of a text about what is protected, which may quote a column that tells units apart.
pub(super) fn in_flags_of_terms(text: &str) -> String {
    with_values(text, &OF_TERMS)
}

fn with_values(text: &str, names: &[&str]) -> String {
    names.iter().fold(text.to_owned(), |text, name| {
        text.replace(&format!("`{name} "), &format!("`{} ", flag(name)))
    })
}

/// How to resume a run, in words.
pub(super) fn how_to_resume(place: &Path) -> String {
    let quote = if place.as_os_str().to_string_lossy().contains(' ') {
        "'"
    } else {
        ""
    };
    format!(
        "Resume it with `dpm sample --resume {quote}{}{quote}`",
        place.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_called_by_their_flags() {
        let said = "`step_size` is 0; with `beta` leave `iterations` max or `tau_log_ratio` out, or use `relation substitute`";
        assert_eq!(
            in_flags(said),
            "--step-size is 0; with `beta` leave --iterations max or --tau-log-ratio out, or use `--relation substitute`"
        );
    }

    #[test]
    fn texts_about_units_keep_their_names() {
        let said = "this run protects a unit `unit`. Give `unit patient`, or `relation zero-out`";
        assert_eq!(
            in_flags_of_terms(said),
            "this run protects a unit `unit`. Give `--unit patient`, or `--relation zero-out`"
        );
    }

    #[test]
    fn texts_about_data_keep_the_names_of_columns() {
        let said =
            "no column named `init`; give `columns init=NAME`, or allow more memory (`max_memory`)";
        assert_eq!(
            in_flags_of_data(said),
            "no column named `init`; give `--columns init=NAME`, or allow more memory (`--max-memory`)"
        );
    }
}
