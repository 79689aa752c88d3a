//! `--threads`.

use super::failure::Failure;

/// Has everything run in so many threads, where that is asked for.
pub(super) fn set_threads(threads: Option<usize>) -> Result<(), Failure> {
    let Some(threads) = threads else {
        return Ok(());
    };
    if threads == 0 {
        return Err(Failure::input("--threads must be at least 1"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(Failure::run)
}
