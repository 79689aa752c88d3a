//! `dpm generate`: generated quantities of a run's draws.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Common;
use super::chains::{is_private, read_chains};
use super::failure::Failure;
use super::model_file::ModelFile;
use super::public_data::fill_constants;
use super::say_always;
use crate::check::on_deep_stack;
use crate::model::{Constants, Generator};
use crate::output::stan_csv::StanCsv;
use crate::output::{CONSTANTS, check_files, generated_csv, write_files};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: dpm generate model.dpm model-run

Predictions for public rows: declare them as constants, and loop over them in
`generated quantities`.

    constants { int N_new; vector[N_new] x_new; }
    generated quantities {
      array[N_new] int y_new = bernoulli_logit_rng(alpha + beta * x_new);
    }

With --data new.csv, the column x_new fills the constant of that name, columns
x_new.1, x_new.2, ... fill a matrix (or an array of vectors), and the first size,
N_new here, becomes the number of rows. For `dpm sample` such constants can be
empty: {\"N_new\": 0, \"x_new\": []}. Constants that are given here replace
those of the run; parameters keep their sizes. The rows must be public: no noise
protects them. Apart from them only constants and draws of the run are read, so
the run's guarantee still holds.

A draw for which the program reaches `reject` becomes a row of `nan`.")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// The directory of a run of `dpm sample` with this model
    run: PathBuf,
    /// Public constants, which replace those of the run with the same names [default: MODEL.constants.json, if it exists]
    #[arg(long, value_name = "FILE.json")]
    constants: Option<PathBuf>,
    /// Public rows, as CSV: each column fills the constant of its name
    #[arg(long, value_name = "PUBLIC.csv")]
    data: Option<PathBuf>,
    /// Seed of the random draws
    #[arg(
        long,
        allow_negative_numbers = true,
        default_value_t = 1,
        value_name = "S"
    )]
    seed: u64,
    /// Where to write generated-1.csv, ... [default: RUN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let file = ModelFile::read(&arguments.model, common)?;
    file.show_warnings(common);
    if file.checked.generated_quantities.is_empty() {
        return Err(Failure::input(format!(
            "`{}` generates nothing: declare what you want in `generated quantities {{ ... }}`",
            arguments.model.display()
        )));
    }
    let chains = read_chains(&arguments.run)?;
    let names: Vec<String> = (1..=chains.len())
        .map(|i| format!("generated-{i}.csv"))
        .collect();
    let place = arguments.out.as_ref().unwrap_or(&arguments.run);
    check_files(place, &names, arguments.overwrite).map_err(Failure::run)?;
    let constants = constants(arguments, &file, common)?;
    let texts = on_deep_stack(|| generate(arguments, &file, &constants, &chains, common))?;
    let files: Vec<(String, String)> = names.into_iter().zip(texts).collect();
    write_files(place, &files, arguments.overwrite).map_err(Failure::run)?;
    common.say(format!(
        "{} file{} written to {}",
        files.len(),
        if files.len() == 1 { "" } else { "s" },
        place.display()
    ));
    if !chains.iter().all(is_private) {
        say_always("NOT PRIVATE: the draws come from a run without privacy, and so do these");
    }
    Ok(())
}

fn constants(
    arguments: &Arguments,
    file: &ModelFile,
    common: &Common,
) -> Result<Constants, Failure> {
    // Those of the run, so that a file need hold only what is new or other.
    let of_run = arguments.run.join(CONSTANTS);
    let mut constants = if of_run.exists() {
        file.constants(Some(&of_run))?
    } else {
        Constants::none()
    };
    let own = file.constants(arguments.constants.as_deref())?;
    let unknown = own.names().filter(|&name| !file.declares_constant(name));
    let unknown: Vec<&str> = unknown.collect();
    if !unknown.is_empty() {
        common.say(format!(
            "note: the model does not declare these constants, which are ignored: {}",
            unknown.join(", ")
        ));
    }
    constants.take(own);
    if let Some(path) = &arguments.data {
        let taken = fill_constants(path, &file.checked, &mut constants)?;
        common.say(format!(
            "{} row{} of {} fill {}",
            taken.rows,
            if taken.rows == 1 { "" } else { "s" },
            path.display(),
            taken.constants.join(", ")
        ));
        if !taken.unused.is_empty() {
            common.say(format!(
                "note: no constant is called {}: these columns are ignored",
                taken.unused.join(", ")
            ));
        }
    }
    Ok(constants)
}

/// The text of each chain's file.
fn generate(
    arguments: &Arguments,
    file: &ModelFile,
    constants: &Constants,
    chains: &[StanCsv],
    common: &Common,
) -> Result<Vec<String>, Failure> {
    let mut generator =
        Generator::new(&file.checked, constants).map_err(|e| file.bind_failure(&e, common))?;
    for line in &generator.printed {
        common.say(line);
    }
    let names = generator.names();
    let mut texts = Vec::with_capacity(chains.len());
    let mut rejected = 0;
    let mut first_rejection = None;
    for (i, chain) in chains.iter().enumerate() {
        let columns = ParameterColumns::find(&generator, file, chain, &arguments.run)?;
        generator.start_chain(arguments.seed, i as u64 + 1);
        let mut rows = Vec::with_capacity(chain.draws.len());
        for (k, draw) in chain.draws.iter().enumerate() {
            match generator.run(&columns.values(draw)) {
                Ok(generated) => {
                    for line in &generated.printed {
                        common.say(line);
                    }
                    rows.push(generated.values);
                }
                Err(error) if error.rejected => {
                    rejected += 1;
                    first_rejection.get_or_insert_with(|| {
                        format!("draw {} of chain {}: {}", k + 1, i + 1, error.message)
                    });
                    rows.push(vec![f64::NAN; names.len()]);
                }
                Err(error) => {
                    common.say(format!("in draw {} of chain {}:", k + 1, i + 1));
                    return Err(file.bind_failure(&error, common));
                }
            }
        }
        texts.push(generated_csv(
            &keys(arguments, file, chain, i + 1, rows.len()),
            &names,
            &rows,
        ));
    }
    if let Some(first) = first_rejection {
        common.say(format!(
            "warning: {rejected} draw{} rejected and written as nan; the first is {first}",
            if rejected == 1 { " was" } else { "s were" }
        ));
    }
    Ok(texts)
}

/// The comments above the names: CmdStan's keys, and the chain's own about its
/// privacy.
fn keys(
    arguments: &Arguments,
    file: &ModelFile,
    chain: &StanCsv,
    id: usize,
    rows: usize,
) -> Vec<(String, String)> {
    let own = [
        (
            "model",
            format!("{}_model", file.stem().replace(char::is_whitespace, "_")),
        ),
        ("method", "generate_quantities".to_string()),
        ("num_samples", rows.to_string()),
        ("id", id.to_string()),
        ("seed", arguments.seed.to_string()),
    ];
    let of_chain = chain
        .keys
        .iter()
        .filter(|(key, _)| key.starts_with("privacy_"));
    own.into_iter()
        .map(|(key, value)| (key.to_string(), value))
        .chain(of_chain.cloned())
        .collect()
}

/// Where in a row of the chain the elements of each parameter stand.
struct ParameterColumns(Vec<Vec<usize>>);

impl ParameterColumns {
    fn find(
        generator: &Generator,
        file: &ModelFile,
        chain: &StanCsv,
        run: &Path,
    ) -> Result<ParameterColumns, Failure> {
        let found = generator.places(|element| chain.columns.iter().position(|c| c == element));
        let found = found.map_err(|[element, name]| {
            Failure::input(format!(
                "the run `{}` has no column `{element}`, which the parameter `{name}` of `{}` needs: give the model and the constants that the run was made with",
                run.display(),
                file.path.display()
            ))
        })?;
        let columns = found.iter().flatten().map(|&column| &chain.columns[column]);
        let expected: HashSet<&String> = columns.collect();
        // Transformed parameters are computed again, so that theirs may differ.
        let transformed: HashSet<&str> = file
            .checked
            .transformed_parameters
            .iter()
            .map(|&id| file.checked.variable(id).name.as_str())
            .collect();
        for column in chain.columns.iter().filter(|c| !c.ends_with("__")) {
            let stem = column.split('.').next().unwrap_or(column);
            if !expected.contains(column) && !transformed.contains(stem) {
                return Err(Failure::input(format!(
                    "the run `{}` has the column `{column}`, and `{}` declares no such parameter: give the model and the constants that the run was made with",
                    run.display(),
                    file.path.display()
                )));
            }
        }
        Ok(ParameterColumns(found))
    }

    fn values(&self, draw: &[f64]) -> Vec<Vec<f64>> {
        self.0
            .iter()
            .map(|places| places.iter().map(|&c| draw[c]).collect())
            .collect()
    }
}
