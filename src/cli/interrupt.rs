//! Ctrl-C, and what `kill` sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// The exit code of an interrupted program: 128 + SIGINT, as in shells.
pub(super) const EXIT_CODE: u8 = 130;

/// Whether somebody wants the run to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first signal asks the run to stop, and a second one ends the program
    /// where it is: whatever was released by then is accounted for.
    ///
    /// Where signals cannot be caught, the first one ends it.
    pub fn watch() -> Interrupt {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that the first does not see its own flag.
            let flag = || Arc::clone(&interrupt.0);
            if register_conditional_shutdown(signal, i32::from(EXIT_CODE), flag()).is_ok() {
                let _ = register(signal, flag());
            }
        }
        interrupt
    }

    pub fn came(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
