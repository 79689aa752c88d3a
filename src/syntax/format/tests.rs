use super::*;

fn formatted(source: &str) -> String {
    format(source).unwrap_or_else(|said| panic!("{said:?}\n{source}"))
}

/// `source` becomes `expected`, which stays unchanged.
fn becomes(source: &str, expected: &str) {
    assert_eq!(formatted(source), expected, "of {source}");
    assert_eq!(formatted(expected), expected);
}

/// Statements of a model block.
fn statements(source: &str, expected: &str) {
    let lines: String = expected.lines().map(|line| format!("  {line}\n")).collect();
    let expected = format!("model {{\n{lines}}}\n").replace("\n  \n", "\n\n");
    becomes(&format!("model {{ {source}\n}}"), &expected);
}

#[test]
fn blanks_are_those_of_the_house() {
    becomes(
        "record{real<lower=0,upper = K+1>x;array[ N,M ]vector [ K ] a,b=c ;factor( \"a\",\"b\" )f;}",
        "record {\n  real<lower=0, upper=K + 1> x;\n  array[N, M] vector[K] a, b = c;\n  factor(\"a\", \"b\") f;\n}\n",
    );
    becomes(
        "functions{array[ , ]int f(data vector x,array[]real y){return;}void g(){}}",
        "functions {\n  array[,] int f(data vector x, array[] real y) {\n    return;\n  }\n  void g() { }\n}\n",
    );
    statements(
        "y~normal( mu,sigma )T[ ,1 ];",
        "y ~ normal(mu, sigma) T[, 1];",
    );
    statements("x=-a^2*!b';", "x = -a ^ 2 * !b';");
    statements("x=- - -1;", "x = - - -1;");
    statements("x=(a<-b?(1):2);", "x = (a < -b ? (1) : 2);");
    statements(
        "x[1:n,,2:,:i+1,:]+=f( y|mu ,s)+g(y|);",
        "x[1:n, , 2:, : i + 1, :] += f(y | mu, s) + g(y |);",
    );
    statements(
        "for(i in 1:n-1)for(j in x)y+=1;",
        "for (i in 1 : n - 1) for (j in x) y += 1;",
    );
    statements("{}{x=1;}", "{ }\n{\n  x = 1;\n}");
    statements(
        "profile ( \"a\" ) {}while(a)break;",
        "profile(\"a\") { }\nwhile (a) break;",
    );
}

#[test]
fn what_is_written_stays() {
    statements(
        "x = ((1_000)) + 1e-3 + .5 + 2. + 1.50E+10;",
        "x = ((1_000)) + 1e-3 + .5 + 2. + 1.50E+10;",
    );
    statements(";", ";");
    statements("real a, b;\nreal c;", "real a, b;\nreal c;");
    statements("print(\"a  b\", \"//\");", "print(\"a  b\", \"//\");");
}

#[test]
fn one_empty_line_stays_and_more_do_not() {
    becomes(
        "\n\n// a\n\n\n\n// b\nrecord {\n\n\n  real x;\n\n\n  // c\n\n  real y;\n\n}\n\n\nmodel { }\n\n// d\n\n\n",
        "// a\n\n// b\nrecord {\n  real x;\n\n  // c\n\n  real y;\n}\n\nmodel { }\n\n// d\n",
    );
    becomes("", "");
    becomes("\n\n", "");
    becomes("// a", "// a\n");
    becomes("/* a */", "/* a */\n");
}

#[test]
fn long_lines_are_broken_where_they_belong_together() {
    let x = "x".repeat(20);
    statements(
        &format!("y ~ normal({x} + {x} * {x}, {x} + {x} * {x});"),
        &format!("y ~ normal(\n  {x} + {x} * {x},\n  {x} + {x} * {x}\n);"),
    );
    statements(
        &format!("y = {x} + {x} * {x} - {x} / {x};"),
        &format!("y = {x}\n  + {x} * {x}\n  - {x} / {x};"),
    );
    // A single argument is not indented further.
    statements(
        &format!("y = f({x} + {x} * {x} - {x} / {x});"),
        &format!("y = f(\n  {x}\n  + {x} * {x}\n  - {x} / {x}\n);"),
    );
    statements(
        &format!("y = {x} > {x} ? {x} * {x} : {x} ^ {x};"),
        &format!("y = {x} > {x}\n  ? {x} * {x}\n  : {x} ^ {x};"),
    );
    statements(
        &format!("if ({x} && {x} && {x}) {x}[{x}] = 1;"),
        &format!("if ({x} && {x} && {x})\n  {x}[{x}] = 1;"),
    );
    statements(
        &format!("target += normal_lpdf({x} | {x} + {x}, {x} + {x});"),
        &format!("target += normal_lpdf(\n  {x} |\n  {x} + {x},\n  {x} + {x}\n);"),
    );
    becomes(
        &format!("record {{ real<lower={x} * {x}, upper={x} * {x}> {x}; }}"),
        &format!("record {{\n  real<\n    lower={x} * {x},\n    upper={x} * {x}\n  > {x};\n}}\n"),
    );
}

#[test]
fn numbers_fill_lines() {
    let numbers = ["123456789"; 12].join(", ");
    let nine = ["123456789"; 8].join(", ");
    let three = ["123456789"; 4].join(", ");
    statements(
        &format!("x = [{numbers}];"),
        &format!("x = [\n  {nine},\n  {three}\n];"),
    );
}

#[test]
fn no_line_is_longer_than_it_need_be() {
    // Each of these lines fits exactly, but not with one more letter.
    for (before, after) in [
        ("x = f(", ", b);"),
        ("y ~ f(", ", b);"),
        ("x = a + ", " + b;"),
    ] {
        let room = LINE_WIDTH - 2 - before.len() - after.len();
        let source = |length: usize| format!("model {{ {before}{}{after} }}", "a".repeat(length));
        assert_eq!(formatted(&source(room)).lines().count(), 3, "{before}");
        assert!(formatted(&source(room + 1)).lines().count() > 3, "{before}");
    }
}

#[test]
fn bodies_stay_on_their_lines() {
    statements(
        "if (a)\nb = 1;\nelse\nc = 2;",
        "if (a)\n  b = 1;\nelse\n  c = 2;",
    );
    statements("if (a) b = 1; else c = 2;", "if (a) b = 1; else c = 2;");
    statements(
        "if (a) { b = 1; }\nelse if (c) { }\nelse { d = 2; }",
        "if (a) {\n  b = 1;\n} else if (c) { } else {\n  d = 2;\n}",
    );
    statements(
        "for (i in a)\nfor (j in b)\nc();",
        "for (i in a)\n  for (j in b)\n    c();",
    );
}

#[test]
fn comments_stay_with_their_words() {
    statements(
        "a = 1; // one\nbcd = 2;   /* two */\n// three\n\ne = // four\n5; // five\nf = 6;   // six",
        "a = 1;  // one\nbcd = 2; /* two */\n// three\n\ne =  // four\n  5;  // five\nf = 6;  // six",
    );
    statements(
        "y ~ normal(mu, // mean\nsigma // scale\n);",
        "y ~ normal(\n  mu,    // mean\n  sigma  // scale\n);",
    );
    statements(
        "y ~ normal(\n// first\nmu,\n/* second */ sigma\n// last\n);",
        "y ~ normal(\n  // first\n  mu,\n  /* second */ sigma\n  // last\n);",
    );
    statements(
        "if (a) { // yes\nb = 1;\n} // done\n// otherwise\nelse // no\nc = 2;",
        "if (a) {  // yes\n  b = 1;\n}  // done\n// otherwise\nelse  // no\n  c = 2;",
    );
    statements("x = [ // all\n1, 2] - y;", "x = [  // all\n  1, 2\n] - y;");
    becomes("record { // a\n// b\n}", "record {  // a\n  // b\n}\n");
    becomes("record { /* a */ }", "record { /* a */ }\n");
    becomes(
        "model /* a */ { x = /* b */ 1 /* c */; /* d */ }",
        "model /* a */ {\n  x = /* b */ 1 /* c */; /* d */\n}\n",
    );
}

#[test]
fn comments_at_the_ends_of_lines_are_aligned() {
    becomes(
        "record {\n  real a; // 1\n          // goes on\n  real bcdef; // 2\n  real g;\n  real h; // 3\n}",
        "record {\n  real a;      // 1\n               // goes on\n  real bcdef;  // 2\n  real g;\n  real h;  // 3\n}\n",
    );
    // Not with a line that is much longer.
    let long = "x".repeat(40);
    becomes(
        &format!("record {{\nreal a; // 1\nreal {long}; // 2\n}}"),
        &format!("record {{\n  real a;  // 1\n  real {long};  // 2\n}}\n"),
    );
}

#[test]
fn comments_of_several_lines_move_as_one() {
    becomes(
        "record {\n      /* a\n           b\n      */\n      real x;\n}",
        "record {\n  /* a\n       b\n  */\n  real x;\n}\n",
    );
    becomes(
        "record {\n      /* a\n      * b\n*/\n      real x;\n}",
        "record {\n  /* a\n   * b\n   */\n  real x;\n}\n",
    );
}

#[test]
fn line_ends_and_marks_of_the_file_stay() {
    becomes("record {\r\n}\r\n", "record { }\r\n");
    becomes("\u{FEFF}record {\n}\n", "\u{FEFF}record { }\n");
    becomes("// a\rrecord { }\r", "// a\nrecord { }\n");
}

#[test]
fn what_cannot_be_read_is_not_formatted() {
    let said = format("model { x = ; y = 1 }").expect_err("two mistakes");
    let codes: Vec<&str> = said.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["S001", "S002"]);
}
