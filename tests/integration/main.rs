//! The promises, tested from outside: the language, its numbers, the program, its files, the
//! documents. One binary, since each links all of burn.

mod accounting_tables;
mod architecture;
mod check_corpus;
mod check_json;
mod cli;
mod convert;
mod corpus;
mod costs;
mod docs;
mod docs_commands;
mod editor;
mod evaluation;
mod examples;
mod fmt;
mod format_corpus;
#[cfg(feature = "parquet")]
mod formats;
mod functions;
mod generate;
mod harness;
mod ledger;
mod library;
mod lsp;
mod new;
mod packaging;
mod posterior;
mod privacy_schema;
mod read_runs;
mod recipes;
mod records;
mod reference;
mod reference_docs;
mod report;
#[cfg(unix)]
mod resume;
mod score;
mod sensitivity;
mod simulated;
mod stan_mistakes;
mod syntax_corpus;
mod synth;
mod tiled;
mod transforms;
