pub mod stan_csv;
