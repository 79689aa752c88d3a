use super::*;

/// The terms, as `1 x x:z`.
fn terms(right: &str) -> String {
    let formula = parse(&format!("y ~ {right}")).unwrap_or_else(|d| panic!("{d:?}"));
    written(&formula.sum)
}

fn written(sum: &Sum) -> String {
    let atom = |a: &Atom| {
        let name = &a.variable.column.name;
        let inside = match a.variable.function {
            Some(f) => format!("{}({name})", f.name()),
            None => name.clone(),
        };
        match a.power {
            1 => inside,
            power => format!("{inside}^{power}"),
        }
    };
    let term = |t: &Term| t.0.iter().map(atom).collect::<Vec<_>>().join(":");
    let mut all = vec![if sum.intercept { "1" } else { "0" }.to_owned()];
    all.extend(sum.terms.iter().map(term));
    all.join(" ")
}

// What R's `terms` says of the same formulas.
#[test]
fn products_expand_as_in_r() {
    for (right, expected) in [
        ("1", "1"),
        ("x", "1 x"),
        ("0 + x", "0 x"),
        ("x - 1", "0 x"),
        ("-1 + x", "0 x"),
        ("x:z + z", "1 z x:z"),
        ("x * z", "1 x z x:z"),
        ("x * z - x:z", "1 x z"),
        ("a * b * c", "1 a b c a:b a:c b:c a:b:c"),
        ("(a + b):c", "1 a:c b:c"),
        ("(a + b) * c", "1 a b c a:c b:c"),
        ("x:z + z:x + x:x", "1 x x:z"),
        ("x + I(x^2) + log(x)", "1 x x^2 log(x)"),
        ("`my col` + x.1", "1 my col x.1"),
    ] {
        assert_eq!(terms(right), expected, "{right}");
    }
}

#[test]
fn groups_offsets_and_additions_are_told_apart() {
    let text = "y | trials(n) + cens(1 - d) ~ x + offset(log(e)) + (1 + x | g) + (x || h)";
    let formula = parse(text).unwrap_or_else(|d| panic!("{d:?}"));
    assert_eq!(formula.response.column.name, "y");
    let functions: Vec<&str> = formula
        .additions
        .iter()
        .map(|a| &a.function.name[..])
        .collect();
    assert_eq!(functions, ["trials", "cens"]);
    assert!(matches!(&formula.additions[1].argument, Argument::OneMinus(d) if d.name == "d"));
    assert_eq!(written(&formula.sum), "1 x");
    assert_eq!(formula.offsets[0].column.name, "e");
    let groups = formula.groups.iter();
    let groups: Vec<_> = groups
        .map(|g| (&g.by.name[..], g.correlated, written(&g.sum)))
        .collect();
    assert_eq!(
        groups,
        [
            ("g", true, "1 x".to_owned()),
            ("h", false, "1 x".to_owned())
        ]
    );
}

#[test]
fn the_caret_stands_where_reading_stopped() {
    for (text, at, said) in [
        ("y ~ x +", 7, "ends too early"),
        ("y x", 2, "at `x`"),
        ("y ~ x + (1 | g", 14, "ends too early"),
        ("y ~ x $ z", 6, "at `$`"),
        ("~ x", 0, "at `~`"),
        ("", 0, "ends too early"),
        ("y ~ s(x, k = 3)", 7, "at `,`"),
        ("y ~ s(x)", 4, "`s` is not a function"),
        ("y ~ 2 + x", 4, "0 or 1"),
        ("y ~ x:offset(e)", 6, "offset is a term"),
        ("y ~ x:(1 | g)", 6, "by group"),
        ("y ~ (0 | g)", 4, "nothing varies"),
        ("y ~ factor(x)", 4, "the codebook"),
        ("y ~ log(x^2)", 4, "`I()`"),
        ("y ~ I(x^9)", 4, "power"),
        ("y | trials(2 - n) ~ x", 11, "`1 -`"),
    ] {
        let Err(diagnostic) = parse(text) else {
            panic!("{text}")
        };
        assert_eq!(diagnostic.span.start, at, "{text}: {diagnostic:?}");
        assert!(diagnostic.message.contains(said), "{text}: {diagnostic:?}");
    }
}

#[test]
fn anything_is_answered() {
    let words = [
        "y", "~", "x", "+", "(", ")", "|", ":", "*", "1", "I(", "^", "\u{e9}", "`",
    ];
    let mut state: u64 = 7;
    for _ in 0..3_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text.push_str(words[(state >> 33) as usize % words.len()]);
        }
        let _ = parse(&text);
        let _ = parse(&format!("y ~ {text}"));
    }
    assert!(parse(&"(".repeat(9_000)).is_err());
    assert!(parse(&format!("y ~ {}a", "a*b*c*d*e*f*g*h*i*j*".repeat(20))).is_err());
}
