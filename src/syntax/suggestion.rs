//! "Did you mean ...?": the nearest of a list of words, when it is near enough.

/// The candidate that a reader would take `word` for, if any.
///
/// Letters missing, added, replaced or swapped each count one; up to a third of
/// the word may differ (at least one letter, at most three), so that `x` is
/// never taken for `y`. Case differences do not count. The first of equally near candidates wins.
pub fn did_you_mean<'a, I, S>(word: &str, candidates: I) -> Option<&'a str>
where
    I: IntoIterator<Item = &'a S>,
    S: AsRef<str> + ?Sized + 'a,
{
    let typed: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    if typed.len() < 2 {
        return None;
    }
    let limit = (typed.len() / 3).clamp(1, 3);
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in candidates {
        let candidate = candidate.as_ref();
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        if candidate == word || letters.len().abs_diff(typed.len()) > limit {
            continue;
        }
        let distance = edit_distance(&typed, &letters);
        // A two-letter word with one letter changed shares too little.
        let near = distance <= limit && distance * 2 < typed.len().max(letters.len());
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Damerau's distance, restricted form: each pair of letters is swapped at most once.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "normal",
        "bernoulli_logit",
        "beta",
        "binomial",
        "real",
        "int",
    ];

    #[test]
    fn near_words_are_found() {
        assert_eq!(did_you_mean("norml", &NAMES), Some("normal"));
        assert_eq!(did_you_mean("nomral", &NAMES), Some("normal"));
        assert_eq!(
            did_you_mean("bernouli_logti", &NAMES),
            Some("bernoulli_logit")
        );
        assert_eq!(did_you_mean("Normal", &NAMES), Some("normal"));
        assert_eq!(did_you_mean("rael", &NAMES), Some("real"));
        assert_eq!(did_you_mean("itn", &NAMES), Some("int"));
    }

    #[test]
    fn far_and_tiny_words_are_not() {
        assert_eq!(did_you_mean("x", &["y"]), None);
        assert_eq!(did_you_mean("mu", &["nu"]), None);
        assert_eq!(did_you_mean("poisson", &NAMES), None);
        assert_eq!(did_you_mean("", &NAMES), None);
    }

    #[test]
    fn candidates_may_be_owned() {
        let owned = vec![String::from("sigma"), String::from("alpha")];
        assert_eq!(did_you_mean("sgima", &owned), Some("sigma"));
    }
}
