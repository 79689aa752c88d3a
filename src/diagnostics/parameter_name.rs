//! The two spellings of an element's name, and their order.
//!
//! People read `m[2,1]`; a Stan CSV header has `m.2.1`. Indices start at 1 and
//! containers are column-major: the first index runs fastest.

/// `m.2.1` as `m[2,1]`; a name without a dot, or already in brackets, as it is.
pub fn bracket_name(name: &str) -> String {
    match name.split_once('.') {
        Some((variable, indices)) => format!("{variable}[{}]", indices.replace('.', ",")),
        None => name.to_owned(),
    }
}

/// `m[2,1]` as `m.2.1`, also with spaces after the comma; a name without brackets as it is.
pub fn dot_name(name: &str) -> String {
    let inside = name.split_once('[').and_then(|(variable, rest)| {
        let indices = rest.strip_suffix(']')?;
        Some((variable, indices))
    });
    match inside {
        Some((variable, indices)) => {
            let indices: Vec<&str> = indices.split(',').map(str::trim).collect();
            format!("{variable}.{}", indices.join("."))
        }
        None => name.to_owned(),
    }
}

/// Bracket names of all elements of a variable with these dimensions, column-major:
/// of `m` 2 × 2, `m[1,1]`, `m[2,1]`, `m[1,2]`, `m[2,2]`. A scalar, no dimensions, is its own element.
pub fn element_names(variable: &str, dimensions: &[usize]) -> Vec<String> {
    if dimensions.is_empty() {
        return vec![variable.to_owned()];
    }
    let total: usize = dimensions.iter().product();
    let name_of = |position: usize| {
        let mut rest = position;
        let mut index_in = |&size: &usize| {
            let index = rest % size + 1;
            rest /= size;
            index.to_string()
        };
        let indices: Vec<String> = dimensions.iter().map(&mut index_in).collect();
        format!("{variable}[{}]", indices.join(","))
    };
    (0..total).map(name_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_convert_both_ways() {
        for (dots, brackets) in [
            ("alpha", "alpha"),
            ("beta.1", "beta[1]"),
            ("m.2.1", "m[2,1]"),
            ("lp__", "lp__"),
        ] {
            assert_eq!(bracket_name(dots), brackets);
            assert_eq!(dot_name(brackets), dots);
            assert_eq!(bracket_name(brackets), brackets);
            assert_eq!(dot_name(dots), dots);
        }
        assert_eq!(dot_name("m[2, 1]"), "m.2.1");
        assert_eq!(dot_name("broken[1"), "broken[1");
    }

    #[test]
    fn elements_are_column_major() {
        assert_eq!(element_names("a", &[]), ["a"]);
        assert_eq!(element_names("b", &[2]), ["b[1]", "b[2]"]);
        assert_eq!(
            element_names("m", &[2, 3]),
            ["m[1,1]", "m[2,1]", "m[1,2]", "m[2,2]", "m[1,3]", "m[2,3]"]
        );
        assert!(element_names("none", &[0, 2]).is_empty());
    }
}
