//! Generated quantities and user-defined functions as numbers: what the
//! interpreter computes, and what `dpm generate` writes.

use dpm::testing::check::{Checked, check, on_deep_stack};
use dpm::testing::density::Density;
use dpm::testing::model::{BindError, Generator};
use dpm::testing::syntax::{parse, render};
use dpm::{Constants, Model};

use crate::corpus::{programs, read};
use crate::evaluation;
use crate::evaluation::{Random, bind, constants_in};
use crate::harness::{Folder, Outcome, folder_of, says};

fn checked(source: &str) -> Checked {
    let parsed = parse(source);
    let result = check(&parsed.program.expect("a program"));
    let said = render(&result.diagnostics, source, "test.dpm", false);
    result.checked.unwrap_or_else(|| panic!("{said}"))
}

/// The generated quantities of a program without parameters or constants but `a`.
fn generated(source: &str, a: f64) -> Result<Vec<f64>, BindError> {
    let checked = checked(source);
    let mut generator = Generator::new(&checked, &Constants::none())?;
    let parameters = generator
        .parameters()
        .iter()
        .map(|_| vec![a])
        .collect::<Vec<_>>();
    generator.run(&parameters).map(|g| g.values)
}

/// The value of an expression in which `a` is 0.75, with these functions defined.
fn value(functions: &str, expression: &str) -> f64 {
    let source = format!(
        "functions {{ {functions} }} parameters {{ real a; }} model {{ }} generated quantities {{ real value = {expression}; }}"
    );
    generated(&source, 0.75).expect("a value")[0]
}

#[test]
fn functions_compute_what_they_say() {
    let cases = [
        (
            "int f(int n) { return n <= 1 ? 1 : n * f(n - 1); }",
            "f(10)",
            3_628_800.0,
        ),
        (
            "int f(int n) { if (n < 2) return n; return f(n - 1) + f(n - 2); }",
            "f(20)",
            6765.0,
        ),
        // Ackermann's function: recursion in an argument.
        (
            "int f(int m, int n) { if (m == 0) return n + 1; if (n == 0) return f(m - 1, 1); return f(m - 1, f(m, n - 1)); }",
            "f(2, 3)",
            9.0,
        ),
        // Each call has its own variables.
        (
            "int f(int n) { int own = n; int deeper; if (n == 0) return 0; deeper = f(n - 1); return own + deeper; }",
            "f(100)",
            5050.0,
        ),
        (
            "int even(int n) { return n == 0 ? 1 : odd(n - 1); } int odd(int n) { return n == 0 ? 0 : even(n - 1); }",
            "even(500) * 10 + odd(7)",
            11.0,
        ),
        // A thousand calls inside one another are allowed.
        (
            "int f(int n) { return n == 0 ? 0 : 1 + f(n - 1); }",
            "f(998)",
            998.0,
        ),
        (
            "real f(real x) { if (x > 1) return 1; else if (x > 0.5) return 2; return 3; }",
            "f(a)",
            2.0,
        ),
        (
            "real f(vector v) { for (x in v) if (x > a_few()) return x; return 0; } real a_few() { return 2; }",
            "f([1, 2, 3, 4]')",
            3.0,
        ),
        (
            "int f(int n) { int s = 0; for (i in 1:n) { if (i % 2 == 0) continue; if (i > 7) break; s += i; } return s; }",
            "f(100)",
            16.0,
        ),
        (
            "int f(int n) { int k = 0; int m = n; while (m != 1) { m = m % 2 == 0 ? m / 2 : 3 * m + 1; k += 1; } return k; }",
            "f(27)",
            111.0,
        ),
        // `break` leaves the inner loop only, `return` both.
        (
            "int f() { int s = 0; for (i in 1:4) { for (j in 1:4) { if (j == 3) break; if (i == 4) return s; s += 1; } s += 10; } return -1; }",
            "f()",
            36.0,
        ),
        (
            "int f() { int i = 0; while (1) { i += 1; if (i < 5) continue; break; } return i; }",
            "f()",
            5.0,
        ),
        // Overloads, and an int where a real is wanted: no integer division there.
        (
            "real f(real x) { return x / 2; } real f(vector x) { return 100; }",
            "f(3) + f([1]')",
            101.5,
        ),
        (
            "vector f(int n) { vector[n] v; for (i in 1:n) v[i] = i; return v; }",
            "sum(f(4)[2:3])",
            5.0,
        ),
        (
            "real f_lpdf(real y, real m) { return -(y - m) ^ 2; }",
            "f_lpdf(a | 1) + f_lupdf(1 | 3)",
            -4.0625,
        ),
        (
            "void f(real x) { if (x > 5) reject(\"never\"); } real g(real x) { f(x); return x; }",
            "g(a)",
            0.75,
        ),
    ];
    for (functions, expression, expected) in cases {
        let found = on_deep_stack(|| value(functions, expression));
        assert_eq!(found, expected, "{functions} {expression}");
    }
}

/// With numbers for parameters a program is interpreted, without them it is
/// traced and evaluated as a graph. Both must give the same transformed parameters.
#[test]
fn the_interpreter_agrees_with_the_graph() {
    let mut compared = 0;
    for path in programs("tests/good/density") {
        let source = read(&path);
        let plain = checked(&source);
        if plain.transformed_parameters.is_empty() || !plain.generated_quantities.is_empty() {
            continue;
        }
        let mut copies = String::new();
        let declared = source
            .split_once("transformed parameters")
            .expect("the block")
            .1;
        for &id in &plain.transformed_parameters {
            let v = plain.variable(id);
            // The declaration's own type, sizes included.
            let words = declared.split([';', '{']).find_map(|statement| {
                let head = statement.split('=').next()?.trim();
                head.strip_suffix(v.name.as_str())
                    .filter(|ty| ty.ends_with([' ', ']']))
            });
            let Some(ty) = words else { continue };
            copies += &format!("{ty} copy_of_{0} = {0};\n", v.name);
        }
        let source = format!("{source}\ngenerated quantities {{\n{copies}\n}}");
        let checked = checked(&source);
        let constants = constants_in(&source);
        let density = Density::new(Model::bind(&checked, &constants).expect("it binds"));
        let mut generator = Generator::new(&checked, &constants).expect("it binds");
        let names: Vec<String> = density.output_names().map(str::to_string).collect();
        let mut random = Random(77);
        for _ in 0..50 {
            let outputs = density.outputs(&random.point(density.dimension(), 1.0));
            let output =
                |name: &str| outputs[names.iter().position(|n| n == name).expect("an output")];
            let parameters: Vec<Vec<f64>> = generator
                .parameters()
                .iter()
                .map(|(name, shape)| {
                    let mut elements = vec![0.0; shape.length()];
                    for (name, position) in shape
                        .column_names(name)
                        .iter()
                        .zip(shape.column_major_order())
                    {
                        elements[position] = output(name);
                    }
                    elements
                })
                .collect();
            let values = generator.run(&parameters).expect("values").values;
            for (name, value) in generator.names().iter().zip(values) {
                let traced = output(name.strip_prefix("copy_of_").expect("a copy"));
                assert!(
                    value == traced || (value - traced).abs() <= 1e-12 * traced.abs().max(1.0),
                    "{}: {name} is {value}, traced {traced}",
                    path.display()
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn endless_recursion_is_an_error() {
    for (functions, expression) in [
        ("int f(int n) { return f(n + 1); }", "f(1)"),
        (
            "int f(int n) { return g(n); } int g(int n) { return f(n); }",
            "f(1)",
        ),
        (
            "real f(real x) { if (x < 0) return 0; return f(x - 1) + f(x - 2); }",
            "f(a)",
        ),
        // Deep bodies use up the stack before there are a thousand calls.
        (
            &format!(
                "real f(real x) {{ return {}f(x){}; }}",
                "(1 + ".repeat(90),
                ")".repeat(90)
            ),
            "f(1)",
        ),
        (
            &format!(
                "int f(int n) {{ {}return f(n);{} return 1; }}",
                "{".repeat(90),
                "}".repeat(90)
            ),
            "f(1)",
        ),
    ] {
        let source = format!(
            "functions {{ {functions} }} parameters {{ real a; }} model {{ target += {expression}; }}"
        );
        let said = bind(&source, &Constants::none()).expect_err("it never ends");
        assert!(said.contains("go too deep"), "{said}");
    }
    // Calls of many functions, one inside the other, are no recursion. Were each walked twice for
    // every walk of the one that calls it, this would never end.
    let chain: String = (0..800)
        .map(|i| format!("real f{i}(real x) {{ return f{}(x) + 1; }}\n", i + 1))
        .collect();
    let source = format!(
        "functions {{ {chain} real f800(real x) {{ return x; }} }} parameters {{ real a; }} model {{ target += f0(a); }}"
    );
    bind(&source, &Constants::none()).expect("it ends");
}

/// `reject` under a condition on a parameter takes the density away, and nothing
/// of what is computed beyond it (here a logarithm of something negative) is left.
#[test]
fn a_rejected_point_has_no_density() {
    let source =
        "functions { real root(real x) { if (x < 0) reject(\"negative\"); return log(x); } }
        record { real<lower=-1, upper=1> y; }
        parameters { real a; }
        model { a ~ normal(0, 1); y ~ normal(root(a), 1); }";
    let density = evaluation::density(source, &Constants::none());
    let table = evaluation::random_table(&density, 5, &mut Random(3));
    let [prior, _, likelihood] = evaluation::log_density(&density, &table, &[-0.5]);
    // What is left is the part that no parameter changes.
    let constant = -0.5 * (2.0 * std::f64::consts::PI).ln();
    assert_eq!(prior, f64::NEG_INFINITY);
    assert!((likelihood - 5.0 * constant).abs() < 1e-12, "{likelihood}");
    assert_eq!(evaluation::gradient(&density, &table, &[-0.5]), [0.0]);
    let [prior, _, likelihood] = evaluation::log_density(&density, &table, &[0.5]);
    assert!(prior.is_finite() && likelihood.is_finite());
}

#[test]
fn what_is_printed_and_what_is_rejected() {
    let source = "transformed constants { matrix[2, 3] m = [[1, 2, 3], [4, 5, 6]]; print(\"m = \", m, \";\", {1, 2}, 0.5); }
        parameters { real a; }
        model { }
        generated quantities { print(\"a is \", a); if (a > 1) reject(\"a is \", a, \", too large\"); int k = 3; }";
    let model = bind(source, &Constants::none()).expect("it binds");
    assert_eq!(model.printed, ["m = [[1, 2, 3], [4, 5, 6]];[1, 2]0.5"]);
    let checked = checked(source);
    let mut generator = Generator::new(&checked, &Constants::none()).expect("it binds");
    assert_eq!(
        generator.run(&[vec![0.5]]).expect("fine").printed,
        ["a is 0.5"]
    );
    let error = generator.run(&[vec![1.5]]).err().expect("rejected");
    assert!(error.rejected);
    assert_eq!(error.message, "rejected: a is 1.5, too large");
    let said = bind(
        "constants { int N; } transformed constants { if (N < 1) reject(\"N is \", N); } parameters { real a; } model { }",
        &Constants::from_json("{\"N\": 0}").expect("JSON"),
    )
    .expect_err("rejected");
    assert!(said.contains("rejected: N is 0"), "{said}");
}

#[test]
fn bad_values_are_explained() {
    let program = |body: &str| {
        format!("parameters {{ real a; }} model {{ }} generated quantities {{ {body} }}")
    };
    for (body, words) in [
        (
            "real<lower=0> x = a;",
            "`x` is -0.5, but its declared lower bound is 0",
        ),
        (
            "vector<upper=1>[2] x = [0, 3]';",
            "`x[2]` is 3, but its declared upper bound is 1",
        ),
        (
            "simplex[2] x = [0.5, 0.6]';",
            "`x` is not a `simplex`: its elements sum to 1.1, not 1",
        ),
        ("int x;", "`x` is `int` and was given no value"),
        ("vector[2] x; x[3] = 1;", "index 3 is outside 1..2"),
        ("real x = normal_rng(0, a);", "`sigma` of `normal` is -0.5"),
        (
            "array[3] real x = normal_rng({0, 0, 0}, {1, 1});",
            "sizes must agree",
        ),
        ("int x = 1; while (x > 0) x += 1;", "run more than"),
    ] {
        let error = generated(&program(body), -0.5).expect_err(body);
        assert!(error.message.contains(words), "{body}: {}", error.message);
        assert!(!error.rejected);
    }
}

/// Vectors and matrices are drawn and computed with, too: every value is a number
/// in the end, whatever nodes a function makes of it.
#[test]
fn containers_are_drawn_and_computed_with() {
    let source = "parameters { real a; } model { }
        generated quantities {
          matrix[2, 2] S = [[2, 0.5], [0.5, 1]];
          vector[2] x = multi_normal_rng([a, 0]', S);
          array[3] vector[2] many = multi_normal_cholesky_rng({[a, 0]', [1, 1]', [2, 2]'}, cholesky_decompose(S));
          simplex[3] d = dirichlet_rng([1, 2, 3]');
          array[3] int<lower=0, upper=10> counts = multinomial_rng(d, 10);
          cholesky_factor_corr[3] L = lkj_corr_cholesky_rng(3, 2);
          int<lower=1, upper=3> c = categorical_rng(softmax([a, 0, 1]'));
          array[2] int<lower=0, upper=1> b = bernoulli_rng({0.2, 0.7});
          real total = sum(counts) - 10;
          real same = sum(mdivide_left_tri_low(cholesky_decompose(S), cholesky_decompose(S) * x) - x);
          real density = multi_normal_lpdf(x | [a, 0]', S) - multi_normal_cholesky_lpdf(x | [a, 0]', cholesky_decompose(S));
          real many_terms = uniform_lpdf([0.5, 2, a]' | 0, 1);
          real mixed = normal_lpdf([a, 1]' | 0, 2) - normal_lpdf(a | 0, 2) - normal_lpdf(1 | 0, 2);
          vector[3] ordered_ = sort_asc([a, 0, 2]');
        }";
    let checked = checked(source);
    let mut generator = Generator::new(&checked, &Constants::none()).expect("it binds");
    for chain in 1..=20 {
        generator.start_chain(9, chain);
        let values = generator.run(&[vec![0.75]]).expect("values").values;
        let value = |wanted: &str| {
            let names = generator.names();
            values[names.iter().position(|n| n == wanted).expect("a column")]
        };
        assert!(
            values
                .iter()
                .filter(|v| !v.is_finite())
                .all(|v| *v == f64::NEG_INFINITY)
        );
        for zero in ["total", "same", "density", "mixed"] {
            assert!(value(zero).abs() < 1e-12, "{zero} is {}", value(zero));
        }
        assert_eq!(value("many_terms"), f64::NEG_INFINITY);
        assert_eq!(
            [
                value("ordered_.1"),
                value("ordered_.2"),
                value("ordered_.3")
            ],
            [0.0, 0.75, 2.0]
        );
        assert_eq!((value("L.1.1"), value("L.1.2")), (1.0, 0.0));
    }
}

/// Random constants are the same in every command.
#[test]
fn random_constants_are_fixed() {
    let source = "transformed constants { real r = normal_rng(0, 1); real s = normal_rng(0, 1); } parameters { real a; } model { } generated quantities { real x = r; real y = s; real z = normal_rng(0, 1); }";
    let (first, second) = (generated(source, 0.0), generated(source, 0.0));
    let first = first.expect("values");
    assert_eq!(first, second.expect("values"));
    assert!(first[0] != first[1] && first[0] != first[2]);
}

const NORMAL: &str = "\
constants {
  int<lower=0> N_new;
  vector[N_new] x_new;
  matrix[N_new, 2] z_new;
}
record {
  real<lower=-10, upper=10> y;
}
parameters {
  real mu;
  vector[2] b;
}
transformed parameters {
  real twice = 2 * mu;
}
model {
  mu ~ normal(0, 10);
  b ~ normal(0, 1);
  y ~ normal(mu, 1);
}
generated quantities {
  real y_rep = normal_rng(mu, 1);
  array[N_new] real pred = normal_rng(mu + x_new + z_new * b, 0.001);
  vector[N_new] mean_ = twice / 2 + x_new + z_new * b;
  real checked = mu;
  if (mu > 1000) reject(\"mu is \", mu);
}
";

struct Place(Folder);

folder_of!(Place);

impl Place {
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", NORMAL);
        place.write(
            "m.constants.json",
            "{\"N_new\": 0, \"x_new\": [], \"z_new\": []}",
        );
        place
    }

    /// The run of 300 rows whose mean is 1/2 exactly.
    fn sample(&self) {
        let rows: String = (0..300)
            .map(|i| format!("{}\n", 0.5 + f64::from(i % 3 - 1)))
            .collect();
        self.write("d.csv", format!("y\n{rows}"));
        self.succeeds(
            "sample m.dpm d.csv --algorithm hmc --not-private --chains 4 --num-warmup 200 --num-samples 1000 --leapfrog-steps 8 --seed 3 --out run",
        );
    }

    /// The columns of a CSV file without its comments, by name.
    fn column(&self, file: &str, name: &str) -> Vec<f64> {
        let text = self.read(file);
        let mut lines = text.lines().filter(|l| !l.starts_with('#'));
        let header = lines.next().expect("a header");
        let k = header
            .split(',')
            .position(|h| h == name)
            .unwrap_or_else(|| panic!("{name} in {header}"));
        lines
            .map(|l| {
                l.split(',')
                    .nth(k)
                    .expect("a field")
                    .parse()
                    .expect("a number")
            })
            .collect()
    }
}

/// The posterior of mu is normal with precision 300 + 1/100 and mean
/// 150 / that, so that the predictive distribution is normal, too. Of 4000 draws,
/// the mean has a standard error below 0.0161 (the chain of mu adds less than 1 %
/// to that: its variance is 1/300 of the whole) and the variance one of 0.0224; at
/// 5.5 of them the false-alarm rate is below 1e-7. A mean off by 0.18, or a
/// variance off by 0.25 (no noise at all, the noise of mu alone), is caught with
/// near certainty.
#[test]
fn predictions_have_the_predictive_distribution() {
    let place = Place::new();
    place.sample();
    let Outcome { code, out, err } = place.dpm("generate m.dpm run --seed 5");
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("NOT PRIVATE"), "{err}");
    let mut all = Vec::new();
    for chain in 1..=4 {
        let file = format!("run/generated-{chain}.csv");
        let text = place.read(&file);
        assert!(text.contains("# method = generate_quantities\n"), "{text}");
        assert!(text.contains("# privacy_note = NOT_PRIVATE\n"), "{text}");
        let header = text
            .lines()
            .find(|l| !l.starts_with('#'))
            .expect("a header");
        assert_eq!(header, "y_rep,checked");
        // One row for each draw, in its order.
        let mu = place.column(&format!("run/chain-{chain}.csv"), "mu");
        assert_eq!(place.column(&file, "checked"), mu);
        assert_eq!(mu.len(), 1000);
        all.extend(place.column(&file, "y_rep"));
    }
    let precision = 300.01;
    let (mean, variance) = (150.0 / precision, 1.0 + 1.0 / precision);
    let n = all.len() as f64;
    let found = all.iter().sum::<f64>() / n;
    let spread = all.iter().map(|y| (y - found).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((found - mean).abs() < 5.5 * 0.0161, "{found} {mean}");
    assert!(
        (spread - variance).abs() < 5.5 * 0.0224,
        "{spread} {variance}"
    );
    // Chains do not repeat one another's random numbers.
    assert_ne!(
        all[0] - place.column("run/chain-1.csv", "mu")[0],
        all[1000] - place.column("run/chain-2.csv", "mu")[0]
    );
}

#[test]
fn public_rows_fill_the_constants_of_their_names() {
    let place = Place::new();
    place.sample();
    place.write(
        "new.csv",
        "x_new,z_new.1,other,z_new.2\n1,2,9,3\n-1,0.5,9,0\n",
    );
    let Outcome { code, err, .. } = place.dpm("generate m.dpm run --data new.csv --out predicted");
    assert_eq!(code, 0, "{err}");
    says(&err, "2 rows of new.csv fill x_new, z_new, N_new");
    assert!(err.contains("no constant is called other"), "{err}");
    assert!(!place.file("run/generated-1.csv").exists());
    let drawn = |name: &str| place.column("run/chain-2.csv", name);
    let file = "predicted/generated-2.csv";
    let (mu, b1, b2) = (drawn("mu"), drawn("b.1"), drawn("b.2"));
    let (first, second) = (place.column(file, "mean_.1"), place.column(file, "mean_.2"));
    let predicted = place.column(file, "pred.1");
    for i in 0..mu.len() {
        let (x, y) = (
            mu[i] + 1.0 + 2.0 * b1[i] + 3.0 * b2[i],
            mu[i] - 1.0 + 0.5 * b1[i],
        );
        assert!((first[i] - x).abs() < 1e-12 && (second[i] - y).abs() < 1e-12);
        // 0.001 times a standard normal draw: beyond 8 once in 1e15.
        assert!((predicted[i] - x).abs() < 0.008 && predicted[i] != x);
    }
}

#[test]
fn generate_says_what_does_not_fit() {
    let place = Place::new();
    place.sample();
    place.refuses(
        "generate m.dpm nowhere",
        2,
        &["no chain-1.csv", "dpm sample"],
    );
    let write = |name: &str, text: &str| {
        place.write(&format!("{name}.dpm"), text);
        place.write(
            &format!("{name}.constants.json"),
            "{\"N_new\": 0, \"x_new\": [], \"z_new\": []}",
        );
    };
    let (before, _) = NORMAL
        .split_once("generated quantities")
        .expect("the block");
    write("none", before);
    place.refuses("generate none.dpm run", 2, &["generates nothing"]);
    write("more", &NORMAL.replace("real mu;", "real mu; real nu;"));
    place.refuses(
        "generate more.dpm run",
        2,
        &["no column `nu`", "the model and the constants"],
    );
    write(
        "wider",
        &NORMAL
            .replace("vector[2] b;", "vector[3] b;")
            .replace("z_new * b", "z_new * b[1:2]"),
    );
    place.refuses("generate wider.dpm run", 2, &["no column `b.3`"]);
    write(
        "fewer",
        &NORMAL
            .replace("vector[2] b;", "vector[1] b;")
            .replace("z_new * b", "b[1] * z_new * [1, 1]'"),
    );
    place.refuses(
        "generate fewer.dpm run",
        2,
        &["has the column `b.2`", "no such parameter"],
    );
    // Transformed parameters are computed anew: others are no hindrance.
    write(
        "other",
        &NORMAL.replace(
            "real twice = 2 * mu;",
            "real twice = mu * 2; vector[2] c = b;",
        ),
    );
    place.succeeds("generate other.dpm run --out elsewhere");

    place.write("letters.csv", "x_new,z_new.1,z_new.2\n1,2,three\n");
    place.refuses(
        "generate m.dpm run --data letters.csv",
        2,
        &["line 2, column `z_new.2`", "a number"],
    );
    place.write("short.csv", "x_new,z_new.1\n1,2\n");
    place.refuses(
        "generate m.dpm run --data short.csv",
        2,
        &["z_new", "sizes [1, 2]"],
    );
    place.write("none.csv", "a,b\n1,2\n");
    place.refuses(
        "generate m.dpm run --data none.csv",
        2,
        &["named after a constant", "`x_new`"],
    );
    place.refuses(
        "generate m.dpm run --data missing.csv",
        2,
        &["cannot read `missing.csv`"],
    );
    place.write("ragged.csv", "x_new,z_new.1,z_new.2\n1,2\n");
    place.refuses(
        "generate m.dpm run --data ragged.csv",
        2,
        &["cannot read `ragged.csv`"],
    );
    assert!(!place.file("run/generated-1.csv").exists());

    place.succeeds("generate m.dpm run");
    place.refuses(
        "generate m.dpm run",
        1,
        &["generated-1.csv` exists already", "--overwrite"],
    );
    let first = place.read("run/generated-1.csv");
    place.succeeds("generate m.dpm run --overwrite");
    assert_eq!(place.read("run/generated-1.csv"), first, "the same seed");
    place.succeeds("generate m.dpm run --overwrite --seed 2");
    assert_ne!(place.read("run/generated-1.csv"), first, "another seed");

    // A draw that is rejected is a row of nan; another error stops.
    write("rejecting", &NORMAL.replace("mu > 1000", "mu > 0.5"));
    let Outcome { code, err, .. } = place.dpm("generate rejecting.dpm run --out rejected");
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("were rejected and written as nan")
            && err.contains("of chain 1: rejected: mu is 0."),
        "{err}"
    );
    let mu = place.column("run/chain-3.csv", "mu");
    for (mu, y) in mu
        .iter()
        .zip(place.column("rejected/generated-3.csv", "y_rep"))
    {
        assert_eq!(*mu > 0.5, y.is_nan());
    }
    write(
        "failing",
        &NORMAL.replace("real checked = mu;", "real<upper=0.5> checked = mu;"),
    );
    place.refuses(
        "generate failing.dpm run --out failed",
        2,
        &["in draw ", "error[E0300]", "declared upper bound is 0.5"],
    );
    assert!(!place.file("failed").exists());
}

/// Constants for predictions need not have been known when the run was made: those of `generate`
/// count before the run's, which fill the rest.
#[test]
fn generate_takes_constants_of_its_own() {
    let place = Place::new();
    place.sample();
    place.write(
        "new.json",
        "{\"N_new\": 1, \"x_new\": [3], \"z_new\": [[0, 0]]}",
    );
    // The file beside the model is gone: the run has its own.
    std::fs::remove_file(place.file("m.constants.json")).expect("the constants");
    place.succeeds("generate m.dpm run --out old");
    assert!(!place.read("old/generated-1.csv").contains("mean_.1"));
    place.succeeds("generate m.dpm run --constants new.json --out new");
    let (mu, mean) = (
        place.column("new/generated-1.csv", "checked"),
        place.column("new/generated-1.csv", "mean_.1"),
    );
    assert!(
        mu.iter()
            .zip(mean)
            .all(|(mu, mean)| (mu + 3.0 - mean).abs() < 1e-9)
    );
    // Only those that differ.
    place.write("some.json", "{\"N_new\": 0, \"x_now\": [1]}");
    let said = place
        .succeeds("generate m.dpm run --constants some.json --out some")
        .err;
    assert!(
        said.contains("does not declare") && said.contains("x_now"),
        "{said}"
    );
    // Declared after the run, and filled from a table.
    let later = NORMAL
        .replace("constants {", "constants {\n  int N;\n  vector[N] u;")
        .replace(
            "real checked = mu;",
            "real checked = mu; vector[N] v = mu + u;",
        );
    place.write("later.dpm", &later);
    place.write("u.csv", "u\n5\n6\n");
    place.succeeds("generate later.dpm run --data u.csv --out later");
    let (mu, v) = (
        place.column("later/generated-1.csv", "checked"),
        place.column("later/generated-1.csv", "v.2"),
    );
    assert!(mu.iter().zip(v).all(|(mu, v)| (mu + 6.0 - v).abs() < 1e-9));
    // Parameters keep their sizes.
    let sized = NORMAL
        .replace("vector[2] b;", "vector[N_new + 2] b;")
        .replace("matrix[N_new, 2]", "matrix[N_new, N_new + 2]");
    place.write("sized.dpm", &sized);
    place.write(
        "wide.json",
        "{\"N_new\": 1, \"x_new\": [3], \"z_new\": [[0, 0, 0]]}",
    );
    place.refuses(
        "generate sized.dpm run --constants wide.json --out wide",
        2,
        &["no column `b.3`", "the model and the constants"],
    );
}
