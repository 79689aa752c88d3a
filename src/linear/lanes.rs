//! Loops for the vector instructions that the processor has.

/// Compiles functions for the widest vectors of numbers that processors may have, AVX-512 and AVX2,
/// besides those of the build's target; the first call finds out which to use. Only what is inlined
/// into a function is compiled so.
///
/// Results are the same to the bit whichever is used: no operation is fused or reordered.
macro_rules! vectorised {
    ($($function:tt)*) => {
        #[multiversion::multiversion(targets(
            "x86_64+avx512f+avx512bw+avx512dq+avx512vl",
            "x86_64+avx2",
        ))]
        $($function)*
    };
}

pub(crate) use vectorised;
