//! Under which headings `--help` lists flags.

pub(super) const BUDGET: &str = "Budget";
pub(super) const DATA: &str = "Data";
pub(super) const CHAINS: &str = "Chains";
pub(super) const SIMULATION: &str = "Simulation";
pub(super) const OUTPUT: &str = "Output";
pub(super) const ALL: &str = "Of every command";
