//! Which of several processes this one is, where `mpirun` or `srun` has started them together.

use super::failure::Failure;
#[cfg(feature = "mpi")]
use super::interrupt::Interrupt;
use crate::privacy::ranks::{Follower, Leader, RanksError};

/// The role of a process.
pub(super) enum Role {
    /// All of the run.
    Alone,
    /// The run, asking others about their records.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code))]
    Leader(Leader),
    /// To answer about its records.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code))]
    Follower(Follower),
}

/// The names under which launchers tell a process its rank and the number of ranks: those of Open
/// MPI, MPICH and its kin, and Slurm.
const LAUNCHERS: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
];

/// The rank of this process and the number of ranks, as a launcher says them.
fn launched() -> Option<[usize; 2]> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let both = |names: &[&str; 2]| Some([number(names[0])?, number(names[1])?]);
    LAUNCHERS.iter().find_map(both)
}

/// Whether rank 0 of the same run speaks for this one, and ends with the run's exit code: launchers
/// kill the others when one ends with an error, and rank 0 might not have said why.
pub(super) fn is_spoken_for() -> bool {
    let samples = || std::env::args().any(|argument| argument == "sample");
    cfg!(feature = "mpi") && launched().is_some_and(|[rank, _]| rank > 0) && samples()
}

/// Finds the other processes.
#[cfg(feature = "mpi")]
pub(super) fn start() -> Result<Role, Failure> {
    use crate::privacy::ranks::{Link, Mpi};

    if launched().is_none() {
        return Ok(Role::Alone);
    }
    let link = Mpi::start().map_err(RanksError::from)?;
    Ok(match (link.rank(), link.ranks()) {
        (_, 1) => Role::Alone,
        (0, _) => Role::Leader(Leader::new(Box::new(link))),
        _ => {
            // Rank 0 ends when it wants to, and this one then.
            let _ = Interrupt::watch();
            Role::Follower(Follower::new(Box::new(link)))
        }
    })
}

/// Without MPI each of several processes would be a run of its own.
#[cfg(not(feature = "mpi"))]
pub(super) fn start() -> Result<Role, Failure> {
    match launched() {
        Some([_, ranks]) if ranks > 1 => Err(Failure::input(format!(
            "this is one of {ranks} processes, and this program was built without MPI: each would be a run of its own. Build it with `cargo build --release --features mpi`, or start one process"
        ))),
        _ => Ok(Role::Alone),
    }
}

impl From<RanksError> for Failure {
    fn from(error: RanksError) -> Failure {
        match error {
            RanksError::Link(_) => Failure::run(error),
            error => Failure::input(error),
        }
    }
}
