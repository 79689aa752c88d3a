//! Under which headings `--help` lists flags.

pub(super) const BUDGET: &str = "Budget";
pub(super) const DATA: &str = "Data";
pub(super) const CHAINS: &str = "Chains";
pub(super) const OUTPUT: &str = "Output";
pub(super) const STEPS: &str = "Steps of dp-hmc, dp-penalty, dp-barker, nuts, hmc and rwmh";
pub(super) const NOISE: &str = "Clipping and noise of samplers whose chains are paid for";
pub(super) const BATCHES: &str = "Batches of dp-sgld, dp-sgnht, dp-sghmc, dp-barker and dp-penalty";
pub(super) const LANGEVIN: &str = "dp-langevin";
