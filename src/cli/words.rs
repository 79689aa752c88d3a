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

/// A text of the library, which calls a setting `step_size`, in the program's words: --step-size.
/// Not for texts that quote names of the user's.
pub(super) fn in_flags(text: &str) -> String {
    let settings = Setting::ALL.iter().map(|setting| setting.name());
    settings.chain(SHARED).fold(text.to_owned(), |text, name| {
        text.replace(&format!("`{name}`"), &flag(name))
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
        let said = "`step_size` is 0; with `beta` leave `iterations` max or `tau_log_ratio` out";
        assert_eq!(
            in_flags(said),
            "--step-size is 0; with `beta` leave --iterations max or --tau-log-ratio out"
        );
    }
}
