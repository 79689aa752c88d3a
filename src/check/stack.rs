//! How much of the thread's stack is in use: what recurses with a program's own
//! recursion asks before it goes deeper.

/// A place on the stack, to measure from.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    start: usize,
}

impl Stack {
    /// The place where the caller stands.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_uses_the_stack() {
        fn down(levels: usize, from: Stack) -> usize {
            let ballast = std::hint::black_box([levels as u8; 100]);
            match levels {
                0 => from.used(),
                n => down(n - 1, from) + usize::from(ballast[0]) * 0,
            }
        }
        let from = Stack::here();
        assert!(from.used() < 10_000);
        let used = down(1000, from);
        assert!((100_000..10_000_000).contains(&used), "{used}");
    }
}
