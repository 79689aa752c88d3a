//! The thread's stack: code that recurses as a program's own functions do asks how much of it is in
//! use before it goes deeper.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// A place on the stack, to measure from.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    start: usize,
}

/// The usable part of a stack of unknown size: threads have 2 MiB by default.
const ORDINARY: usize = 1024 * 1024;

/// The usable part of a stack made by [`on_deep_stack`], and its size: the rest is for the nesting
/// of one function's body, which is not measured.
const DEEP: usize = 60 * 1024 * 1024;
const DEEP_STACK: usize = 64 * 1024 * 1024;

thread_local! {
    static LIMIT: Cell<usize> = const { Cell::new(ORDINARY) };
}

impl Stack {
    /// The place of the caller.
    #[inline(never)]
    pub fn here() -> Stack {
        let mark = 0u8;
        Stack {
            start: std::hint::black_box(std::ptr::from_ref(&mark)).addr(),
        }
    }

    /// Bytes between that place and the caller's; meaningful on one thread.
    pub fn used(self) -> usize {
        Stack::here().start.abs_diff(self.start)
    }

    /// Whether it is time to postpone deeper work.
    pub fn is_half_used_up(self) -> bool {
        self.used() > LIMIT.get() / 2
    }

    /// Whether one more call would be too deep.
    pub fn is_used_up(self) -> bool {
        self.used() > LIMIT.get()
    }
}

/// Runs `work` where functions may call one another a thousand deep. Memory is
/// taken as it is used.
pub fn on_deep_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if LIMIT.get() == DEEP {
        return work();
    }
    let work = Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let outcome = std::thread::scope(|scope| {
        let deep = std::thread::Builder::new()
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, || {
                LIMIT.set(DEEP);
                take().map(|work| work())
            });
        deep.ok().map(|thread| thread.join())
    });
    match outcome {
        Some(Ok(Some(result))) => result,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        // No thread could be started: the present stack has to be enough.
        Some(Ok(None)) | None => match take() {
            Some(work) => work(),
            None => unreachable!("the work is taken once"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recurses until the stack is used up.
    fn down(from: Stack, depth: usize) -> usize {
        let ballast = std::hint::black_box([1u8; 100]);
        if from.is_used_up() {
            return depth;
        }
        down(from, depth + usize::from(ballast[7]))
    }

    #[test]
    fn a_deep_stack_is_deeper() {
        let ordinary = down(Stack::here(), 0);
        let deep = on_deep_stack(|| on_deep_stack(|| down(Stack::here(), 0)));
        assert!(ordinary > 1000, "{ordinary}");
        assert!(deep > 20 * ordinary, "{deep} {ordinary}");
    }
}
