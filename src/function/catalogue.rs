//! Every built-in function: name, documentation and signatures.
//!
//! One entry per function. The checker, "did you mean", the reference in `docs/`
//! and the tests read the list; each group is an enum of its own, matched
//! without a wildcard where the model gives its members their meaning.

use std::sync::LazyLock;

use super::Unary;
use super::signature::*;

/// The stages at which a function may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stages {
    All,
    /// Constants and records: it has no derivative.
    WithoutParameters,
    Constants,
    /// Reads only the sizes of its arguments, so that its value is a constant even if they are not.
    Shape,
}

/// One meaning of a name. A name may have several, distinguished by their arguments.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: &'static str,
    /// Names of the arguments, as many as the longest signature has.
    pub parameters: &'static [&'static str],
    /// One sentence or two.
    pub documentation: &'static str,
    /// The heading under which the reference lists it.
    pub category: &'static str,
    pub stages: Stages,
    pub signatures: &'static [Signature],
    pub builtin: Builtin,
}

impl Function {
    /// The ways to call it, sizes marked as constants.
    pub fn signatures_in_words(&self) -> Vec<String> {
        let described = |s: &Signature| {
            let arguments: Vec<String> = s
                .arguments
                .iter()
                .zip(self.parameters)
                .map(|(pattern, parameter)| match pattern {
                    Pattern::Size => format!("constant int {parameter}"),
                    other => format!("{other} {parameter}"),
                })
                .collect();
            format!("{} {}({})", s.result, self.name, arguments.join(", "))
        };
        self.signatures.iter().map(described).collect()
    }

    /// Its documentation, where it may be used, and its other names.
    pub fn meaning(&self) -> String {
        let stages = match self.stages {
            Stages::All => "",
            Stages::WithoutParameters => " Not of parameters.",
            Stages::Constants => " Of constants only.",
            Stages::Shape => " A constant, whatever the argument is.",
        };
        let others: Vec<String> = SYNONYMS
            .iter()
            .filter(|(_, name)| *name == self.name)
            .map(|(synonym, _)| format!("`{synonym}`"))
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!(" Also called {}.", others.join(", "))
        };
        format!("{}{stages}{others}", self.documentation)
    }
}

macro_rules! functions {
    ($($(#[$meta:meta])* $group:ident $title:literal {$(
        $variant:ident $name:literal ($($parameter:ident),*) $stages:ident $documentation:literal
            $(($($argument:expr),*) -> $result:expr),+;
    )*})*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub enum $group { $(#[doc = $documentation] $variant),* }
        )*

        /// The meaning of a name of the language's library.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Builtin {
            Unary(Unary),
            /// A mathematical constant, written as a call without arguments.
            Constant(f64),
            $($(#[$meta])* $group($group)),*
        }

        fn groups() -> Vec<Function> {
            vec![$($(Function {
                name: $name,
                parameters: &[$(stringify!($parameter)),*],
                documentation: $documentation,
                category: $title,
                stages: Stages::$stages,
                signatures: &[$(Signature { arguments: &[$($argument),*], result: $result }),+],
                builtin: Builtin::$group($group::$variant),
            }),*),*]
        }
    };
}

functions! {
    /// Operations of two numbers that are nodes of the graphs themselves.
    Operation "Functions of several numbers, element by element" {
        Power "pow" (x, y) All "x to the power y; also written `x ^ y`."
            (EACH, EACH) -> EACH;
        Minimum "fmin" (x, y) All "The smaller of x and y."
            (EACH, EACH) -> EACH;
        Maximum "fmax" (x, y) All "The larger of x and y."
            (EACH, EACH) -> EACH;
        MinimumOfInts "min" (x, y) All "The smaller of two ints."
            (INT, INT) -> INT;
        MaximumOfInts "max" (x, y) All "The larger of two ints."
            (INT, INT) -> INT;
        ArcTangent "atan2" (y, x) All "The angle of the point (x, y), in -pi..pi."
            (EACH, EACH) -> EACH;
        Modulus "fmod" (x, y) All "The remainder of x / y, with the sign of x."
            (EACH, EACH) -> EACH;
    }
    /// Functions of several numbers that are composed of simpler ones.
    Elementwise "Functions of several numbers, element by element" {
        LogSumExp "log_sum_exp" (x, y) All "log(exp(x) + exp(y)) without overflow."
            (EACH, EACH) -> EACH;
        LogDiffExp "log_diff_exp" (x, y) All "log(exp(x) - exp(y)) for x > y, without overflow."
            (EACH, EACH) -> EACH;
        LogInvLogitDiff "log_inv_logit_diff" (x, y) All "log(inv_logit(x) - inv_logit(y)) for x > y."
            (EACH, EACH) -> EACH;
        LogMix "log_mix" (theta, lp1, lp2) All "log(theta exp(lp1) + (1 - theta) exp(lp2)): the log density of a mixture of two."
            (EACH, EACH, EACH) -> EACH;
        MultiplyLog "multiply_log" (x, y) All "x log(y), and 0 where x is 0."
            (EACH, EACH) -> EACH;
        LogBeta "lbeta" (x, y) All "Logarithm of the beta function."
            (EACH, EACH) -> EACH;
        Beta "beta" (x, y) All "Beta function."
            (EACH, EACH) -> EACH;
        LogChoose "lchoose" (n, k) All "Logarithm of the binomial coefficient, for real n and k, too."
            (EACH, EACH) -> EACH;
        Choose "choose" (n, k) All "The binomial coefficient: how many sets of k among n."
            (INT, INT) -> INT;
        LogFallingFactorial "log_falling_factorial" (x, n) All "Logarithm of x (x - 1) ... (x - n + 1)."
            (EACH, EACH) -> EACH;
        LogRisingFactorial "log_rising_factorial" (x, n) All "Logarithm of x (x + 1) ... (x + n - 1)."
            (EACH, EACH) -> EACH;
        Hypot "hypot" (x, y) All "sqrt(x^2 + y^2)."
            (EACH, EACH) -> EACH;
        PositiveDifference "fdim" (x, y) All "x - y where that is positive, else 0."
            (EACH, EACH) -> EACH;
        MultiplyAdd "fma" (x, y, z) All "x y + z."
            (EACH, EACH, EACH) -> EACH;
    }
    /// Functions with an int that says how many factors or terms there are.
    Counted "Functions of several numbers, element by element" {
        FallingFactorial "falling_factorial" (x, n) All "x (x - 1) ... (x - n + 1), for n >= 0."
            (REAL, SIZE) -> REAL;
        RisingFactorial "rising_factorial" (x, n) All "x (x + 1) ... (x + n - 1), for n >= 0."
            (REAL, SIZE) -> REAL;
        LogMultivariateGamma "lmgamma" (n, x) All "Logarithm of the multivariate gamma function of dimension n."
            (SIZE, REAL) -> REAL;
    }
    /// Functions without a known derivative.
    Special "Special functions of constants" {
        LowerGamma "gamma_p" (a, x) Constants "Regularised lower incomplete gamma function P(a, x)."
            (EACH, EACH) -> EACH;
        UpperGamma "gamma_q" (a, x) Constants "Regularised upper incomplete gamma function Q(a, x)."
            (EACH, EACH) -> EACH;
        IncompleteBeta "inc_beta" (a, b, x) Constants "Regularised incomplete beta function I_x(a, b)."
            (EACH, EACH, EACH) -> EACH;
        OwensT "owens_t" (h, a) Constants "Owen's T function."
            (EACH, EACH) -> EACH;
        BesselFirst "bessel_first_kind" (v, x) Constants "Bessel function of the first kind, of the order v, an int."
            (EACH, EACH) -> EACH;
        BesselSecond "bessel_second_kind" (v, x) Constants "Bessel function of the second kind, of the order v, an int."
            (EACH, EACH) -> EACH;
        ModifiedBesselFirst "modified_bessel_first_kind" (v, x) Constants "Modified Bessel function of the first kind, of the order v, an int."
            (EACH, EACH) -> EACH;
        ModifiedBesselSecond "modified_bessel_second_kind" (v, x) Constants "Modified Bessel function of the second kind, of the order v, an int."
            (EACH, EACH) -> EACH;
        LogModifiedBesselFirst "log_modified_bessel_first_kind" (v, x) Constants "Logarithm of the modified Bessel function of the first kind, of the order v >= 0."
            (EACH, EACH) -> EACH;
    }
    /// Functions of one container that give a number.
    Reduction "Sums and other folds" {
        Sum "sum" (x) All "Sum of the elements; 0 of nothing."
            (INTS) -> INT, (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        Mean "mean" (x) All "Mean of the elements."
            (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        Product "prod" (x) All "Product of the elements; 1 of nothing."
            (INTS) -> INT, (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        Minimum "min" (x) All "The smallest element; infinity of nothing."
            (INTS) -> INT, (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        Maximum "max" (x) All "The largest element; minus infinity of nothing."
            (INTS) -> INT, (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        Variance "variance" (x) All "Sample variance, with the divisor n - 1; 0 of a single element."
            (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        StandardDeviation "sd" (x) All "Sample standard deviation: the root of the variance."
            (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        LogSumExp "log_sum_exp" (x) All "log(sum(exp(x))) without overflow."
            (REALS) -> REAL, (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (MATRIX) -> REAL;
        DotSelf "dot_self" (x) All "Sum of the squares."
            (VECTOR) -> REAL, (ROW_VECTOR) -> REAL;
        Norm1 "norm1" (x) All "Sum of the absolute values."
            (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (REALS) -> REAL;
        Norm2 "norm2" (x) All "Euclidean length: the root of the sum of squares."
            (VECTOR) -> REAL, (ROW_VECTOR) -> REAL, (REALS) -> REAL;
    }
    /// Sums of products of two containers, or of the columns of a matrix.
    DotProducts "Sums and other folds" {
        DotProduct "dot_product" (x, y) All "Sum of the products of the elements."
            (VECTOR, VECTOR) -> REAL, (VECTOR, ROW_VECTOR) -> REAL, (ROW_VECTOR, VECTOR) -> REAL,
            (ROW_VECTOR, ROW_VECTOR) -> REAL, (REALS, REALS) -> REAL;
        Distance "distance" (x, y) All "Euclidean distance."
            (VECTOR, VECTOR) -> REAL, (VECTOR, ROW_VECTOR) -> REAL, (ROW_VECTOR, VECTOR) -> REAL,
            (ROW_VECTOR, ROW_VECTOR) -> REAL;
        SquaredDistance "squared_distance" (x, y) All "Square of the Euclidean distance."
            (REAL, REAL) -> REAL, (VECTOR, VECTOR) -> REAL, (VECTOR, ROW_VECTOR) -> REAL,
            (ROW_VECTOR, VECTOR) -> REAL, (ROW_VECTOR, ROW_VECTOR) -> REAL;
        ColumnsDotProduct "columns_dot_product" (x, y) All "The dot product of each column of x with that of y."
            (MATRIX, MATRIX) -> ROW_VECTOR, (VECTOR, VECTOR) -> ROW_VECTOR;
        RowsDotProduct "rows_dot_product" (x, y) All "The dot product of each row of x with that of y."
            (MATRIX, MATRIX) -> VECTOR, (ROW_VECTOR, ROW_VECTOR) -> VECTOR;
        ColumnsDotSelf "columns_dot_self" (x) All "Sum of the squares of each column."
            (MATRIX) -> ROW_VECTOR, (VECTOR) -> ROW_VECTOR;
        RowsDotSelf "rows_dot_self" (x) All "Sum of the squares of each row."
            (MATRIX) -> VECTOR, (ROW_VECTOR) -> VECTOR;
    }
    /// Functions of a whole vector.
    Whole "Functions of vectors" {
        Softmax "softmax" (x) All "exp(x) / sum(exp(x))."
            (VECTOR) -> VECTOR;
        LogSoftmax "log_softmax" (x) All "Logarithm of softmax(x)."
            (VECTOR) -> VECTOR;
        LogMix "log_mix" (theta, lp) All "log(sum(theta .* exp(lp))): the log density of a mixture with weights theta. Of an array of log densities, the sum over its elements."
            (VECTOR, VECTOR) -> REAL, (VECTOR, ROW_VECTOR) -> REAL, (ROW_VECTOR, VECTOR) -> REAL,
            (VECTOR, REALS) -> REAL, (REALS, REALS) -> REAL, (REALS, VECTOR) -> REAL,
            (VECTOR, VECTORS) -> REAL;
        CumulativeSum "cumulative_sum" (x) All "The sums of the first 1, 2, ... elements."
            (INTS) -> INTS, (REALS) -> REALS, (VECTOR) -> VECTOR, (ROW_VECTOR) -> ROW_VECTOR;
        SortAscending "sort_asc" (x) All "The elements from the smallest to the largest."
            (INTS) -> INTS, (REALS) -> REALS, (VECTOR) -> VECTOR, (ROW_VECTOR) -> ROW_VECTOR;
        SortDescending "sort_desc" (x) All "The elements from the largest to the smallest."
            (INTS) -> INTS, (REALS) -> REALS, (VECTOR) -> VECTOR, (ROW_VECTOR) -> ROW_VECTOR;
        SortIndicesAscending "sort_indices_asc" (x) Constants "The positions of the elements from the smallest to the largest."
            (INTS) -> INTS, (REALS) -> INTS, (VECTOR) -> INTS, (ROW_VECTOR) -> INTS;
        SortIndicesDescending "sort_indices_desc" (x) Constants "The positions of the elements from the largest to the smallest."
            (INTS) -> INTS, (REALS) -> INTS, (VECTOR) -> INTS, (ROW_VECTOR) -> INTS;
        Rank "rank" (x, s) All "How many elements are less than the one at position s."
            (INTS, SIZE) -> INT, (REALS, SIZE) -> INT, (VECTOR, SIZE) -> INT, (ROW_VECTOR, SIZE) -> INT;
        Quantile "quantile" (x, p) Constants "The p-quantile of the elements, interpolated as R's type 7."
            (REALS, REAL) -> REAL, (VECTOR, REAL) -> REAL, (ROW_VECTOR, REAL) -> REAL,
            (REALS, REALS) -> REALS, (VECTOR, REALS) -> REALS, (ROW_VECTOR, REALS) -> REALS;
    }
    /// Functions about the sizes of their arguments.
    Sizes "Sizes" {
        Size "size" (x) Shape "How many elements there are; of an array, its first size."
            (T) -> INT;
        NumElements "num_elements" (x) Shape "How many numbers there are, through all dimensions."
            (T) -> INT;
        Dims "dims" (x) Shape "All sizes, arrays first."
            (T) -> INTS;
        Rows "rows" (x) Shape "How many rows there are."
            (VECTOR) -> INT, (ROW_VECTOR) -> INT, (MATRIX) -> INT;
        Columns "cols" (x) Shape "How many columns there are."
            (VECTOR) -> INT, (ROW_VECTOR) -> INT, (MATRIX) -> INT;
    }
    /// Functions that give the same elements another shape.
    Conversion "Conversions" {
        ToVector "to_vector" (x) All "The elements as a vector; a matrix column by column."
            (VECTOR) -> VECTOR, (ROW_VECTOR) -> VECTOR, (MATRIX) -> VECTOR, (REALS) -> VECTOR;
        ToRowVector "to_row_vector" (x) All "The elements as a row vector; a matrix column by column."
            (VECTOR) -> ROW_VECTOR, (ROW_VECTOR) -> ROW_VECTOR, (MATRIX) -> ROW_VECTOR, (REALS) -> ROW_VECTOR;
        ToMatrix "to_matrix" (x, m, n, column_major) All "The elements as a matrix of m rows and n columns, filled column by column, or row by row where column_major is 0. An array of row vectors, or of arrays, gives a row for each."
            (MATRIX) -> MATRIX, (VECTOR) -> MATRIX, (ROW_VECTOR) -> MATRIX,
            (ROW_VECTORS) -> MATRIX, (REAL_TABLE) -> MATRIX,
            (MATRIX, SIZE, SIZE) -> MATRIX, (VECTOR, SIZE, SIZE) -> MATRIX,
            (ROW_VECTOR, SIZE, SIZE) -> MATRIX, (REALS, SIZE, SIZE) -> MATRIX,
            (MATRIX, SIZE, SIZE, SIZE) -> MATRIX, (VECTOR, SIZE, SIZE, SIZE) -> MATRIX,
            (ROW_VECTOR, SIZE, SIZE, SIZE) -> MATRIX, (REALS, SIZE, SIZE, SIZE) -> MATRIX;
        ToArray1d "to_array_1d" (x) All "The numbers as an array of one dimension: matrices column by column, arrays row by row."
            (INTS) -> INTS, (INT_TABLE) -> INTS, (REALS) -> REALS, (REAL_TABLE) -> REALS,
            (VECTOR) -> REALS, (ROW_VECTOR) -> REALS, (MATRIX) -> REALS;
        ToArray2d "to_array_2d" (x) All "The matrix as an array of its rows."
            (MATRIX) -> REAL_TABLE;
        ToInt "to_int" (x) WithoutParameters "The integer part, as an int."
            (REAL) -> INT, (REALS) -> INTS, (REAL_TABLE) -> INT_TABLE;
    }
    /// Functions that make a container.
    Making "Making containers" {
        RepVector "rep_vector" (x, n) All "n copies of x."
            (REAL, SIZE) -> VECTOR;
        RepRowVector "rep_row_vector" (x, n) All "n copies of x."
            (REAL, SIZE) -> ROW_VECTOR;
        RepMatrix "rep_matrix" (x, m, n) All "m x n copies of a number; m copies of a row vector; or m copies of a vector, side by side."
            (REAL, SIZE, SIZE) -> MATRIX, (VECTOR, SIZE) -> MATRIX, (ROW_VECTOR, SIZE) -> MATRIX;
        RepArray "rep_array" (x, k, m, n) All "An array of copies of x."
            (T, SIZE) -> ARRAY_OF_T, (T, SIZE, SIZE) -> TABLE_OF_T, (T, SIZE, SIZE, SIZE) -> CUBE_OF_T;
        LinspacedArray "linspaced_array" (n, lower, upper) All "n equally spaced numbers from lower to upper; of one, upper."
            (SIZE, REAL, REAL) -> REALS;
        LinspacedIntArray "linspaced_int_array" (n, lower, upper) Constants "n equally spaced ints from lower to at most upper."
            (SIZE, SIZE, SIZE) -> INTS;
        LinspacedVector "linspaced_vector" (n, lower, upper) All "n equally spaced numbers from lower to upper; of one, upper."
            (SIZE, REAL, REAL) -> VECTOR;
        LinspacedRowVector "linspaced_row_vector" (n, lower, upper) All "n equally spaced numbers from lower to upper; of one, upper."
            (SIZE, REAL, REAL) -> ROW_VECTOR;
        OneHotArray "one_hot_array" (n, k) All "n zeros but for a 1 at position k."
            (SIZE, SIZE) -> REALS;
        OneHotIntArray "one_hot_int_array" (n, k) All "n zeros but for a 1 at position k."
            (SIZE, SIZE) -> INTS;
        OneHotVector "one_hot_vector" (n, k) All "n zeros but for a 1 at position k."
            (SIZE, SIZE) -> VECTOR;
        OneHotRowVector "one_hot_row_vector" (n, k) All "n zeros but for a 1 at position k."
            (SIZE, SIZE) -> ROW_VECTOR;
        OnesArray "ones_array" (n) All "n ones."
            (SIZE) -> REALS;
        OnesIntArray "ones_int_array" (n) All "n ones."
            (SIZE) -> INTS;
        OnesVector "ones_vector" (n) All "n ones."
            (SIZE) -> VECTOR;
        OnesRowVector "ones_row_vector" (n) All "n ones."
            (SIZE) -> ROW_VECTOR;
        ZerosArray "zeros_array" (n) All "n zeros."
            (SIZE) -> REALS;
        ZerosIntArray "zeros_int_array" (n) All "n zeros."
            (SIZE) -> INTS;
        ZerosVector "zeros_vector" (n) All "n zeros."
            (SIZE) -> VECTOR;
        ZerosRowVector "zeros_row_vector" (n) All "n zeros."
            (SIZE) -> ROW_VECTOR;
        UniformSimplex "uniform_simplex" (n) All "n times 1/n."
            (SIZE) -> VECTOR;
        IdentityMatrix "identity_matrix" (n) All "The identity matrix of n rows."
            (SIZE) -> MATRIX;
    }
    /// Functions that pick elements or put containers together.
    Arranging "Parts and compositions of containers" {
        Head "head" (x, n) All "The first n elements."
            (VECTOR, SIZE) -> VECTOR, (ROW_VECTOR, SIZE) -> ROW_VECTOR, (ARRAY_OF_T, SIZE) -> ARRAY_OF_T;
        Tail "tail" (x, n) All "The last n elements."
            (VECTOR, SIZE) -> VECTOR, (ROW_VECTOR, SIZE) -> ROW_VECTOR, (ARRAY_OF_T, SIZE) -> ARRAY_OF_T;
        Segment "segment" (x, i, n) All "n elements, from position i on."
            (VECTOR, SIZE, SIZE) -> VECTOR, (ROW_VECTOR, SIZE, SIZE) -> ROW_VECTOR,
            (ARRAY_OF_T, SIZE, SIZE) -> ARRAY_OF_T;
        Row "row" (x, m) All "Row m; also written `x[m]`."
            (MATRIX, SIZE) -> ROW_VECTOR;
        Column "col" (x, n) All "Column n; also written `x[, n]`."
            (MATRIX, SIZE) -> VECTOR;
        SubRow "sub_row" (x, i, j, n_cols) All "n_cols elements of row i, from column j on."
            (MATRIX, SIZE, SIZE, SIZE) -> ROW_VECTOR;
        SubColumn "sub_col" (x, i, j, n_rows) All "n_rows elements of column j, from row i on."
            (MATRIX, SIZE, SIZE, SIZE) -> VECTOR;
        Block "block" (x, i, j, n_rows, n_cols) All "n_rows rows and n_cols columns, from row i and column j on."
            (MATRIX, SIZE, SIZE, SIZE, SIZE) -> MATRIX;
        Reverse "reverse" (x) All "The elements in the opposite order."
            (VECTOR) -> VECTOR, (ROW_VECTOR) -> ROW_VECTOR, (ARRAY_OF_T) -> ARRAY_OF_T;
        Diagonal "diagonal" (x) All "The diagonal of a matrix."
            (MATRIX) -> VECTOR;
        DiagonalMatrix "diag_matrix" (x) All "The matrix with this diagonal and zeros elsewhere."
            (VECTOR) -> MATRIX;
        AppendRow "append_row" (x, y) All "x above y."
            (REAL, VECTOR) -> VECTOR, (VECTOR, REAL) -> VECTOR, (VECTOR, VECTOR) -> VECTOR,
            (ROW_VECTOR, ROW_VECTOR) -> MATRIX, (ROW_VECTOR, MATRIX) -> MATRIX,
            (MATRIX, ROW_VECTOR) -> MATRIX, (MATRIX, MATRIX) -> MATRIX;
        AppendColumn "append_col" (x, y) All "x left of y."
            (REAL, ROW_VECTOR) -> ROW_VECTOR, (ROW_VECTOR, REAL) -> ROW_VECTOR,
            (ROW_VECTOR, ROW_VECTOR) -> ROW_VECTOR, (VECTOR, VECTOR) -> MATRIX,
            (VECTOR, MATRIX) -> MATRIX, (MATRIX, VECTOR) -> MATRIX, (MATRIX, MATRIX) -> MATRIX;
        AppendArray "append_array" (x, y) All "The elements of x, then those of y."
            (ARRAY_OF_T, ARRAY_OF_T) -> ARRAY_OF_T;
    }
    /// Products and sums of matrices.
    Products "Matrix products" {
        DiagonalPreMultiply "diag_pre_multiply" (v, m) All "diag_matrix(v) * m."
            (VECTOR, MATRIX) -> MATRIX, (ROW_VECTOR, MATRIX) -> MATRIX;
        DiagonalPostMultiply "diag_post_multiply" (m, v) All "m * diag_matrix(v)."
            (MATRIX, VECTOR) -> MATRIX, (MATRIX, ROW_VECTOR) -> MATRIX;
        AddDiagonal "add_diag" (m, d) All "m with d added to its diagonal."
            (MATRIX, REAL) -> MATRIX, (MATRIX, VECTOR) -> MATRIX, (MATRIX, ROW_VECTOR) -> MATRIX;
        CrossProduct "crossprod" (x) All "x' * x."
            (MATRIX) -> MATRIX;
        TransposedCrossProduct "tcrossprod" (x) All "x * x'."
            (MATRIX) -> MATRIX;
        LowerTimesTranspose "multiply_lower_tri_self_transpose" (x) All "L * L', where L is the lower triangle of x."
            (MATRIX) -> MATRIX;
        QuadraticForm "quad_form" (a, b) All "b' * a * b."
            (MATRIX, VECTOR) -> REAL, (MATRIX, MATRIX) -> MATRIX;
        SymmetricQuadraticForm "quad_form_sym" (a, b) All "b' * a * b for a symmetric a."
            (MATRIX, VECTOR) -> REAL, (MATRIX, MATRIX) -> MATRIX;
        DiagonalQuadraticForm "quad_form_diag" (m, v) All "diag_matrix(v) * m * diag_matrix(v)."
            (MATRIX, VECTOR) -> MATRIX, (MATRIX, ROW_VECTOR) -> MATRIX;
        TraceQuadraticForm "trace_quad_form" (a, b) All "The trace of b' * a * b."
            (MATRIX, VECTOR) -> REAL, (MATRIX, MATRIX) -> REAL;
        Trace "trace" (x) All "Sum of the diagonal."
            (MATRIX) -> REAL;
    }
    /// Decompositions, and the solution of linear systems.
    Linear "Linear algebra" {
        Cholesky "cholesky_decompose" (a) All "The lower triangular L with L * L' = a, of a symmetric positive definite matrix; its lower triangle is read."
            (MATRIX) -> MATRIX;
        SolveLower "mdivide_left_tri_low" (a, b) All "a^-1 * b, where a is lower triangular."
            (MATRIX, VECTOR) -> VECTOR, (MATRIX, MATRIX) -> MATRIX;
        SolveLowerRight "mdivide_right_tri_low" (b, a) All "b * a^-1, where a is lower triangular."
            (ROW_VECTOR, MATRIX) -> ROW_VECTOR, (MATRIX, MATRIX) -> MATRIX;
        Solve "mdivide_left" (a, b) All "a^-1 * b; also written `a \\ b`."
            (MATRIX, VECTOR) -> VECTOR, (MATRIX, MATRIX) -> MATRIX;
        SolveRight "mdivide_right" (b, a) All "b * a^-1; also written `b / a`."
            (ROW_VECTOR, MATRIX) -> ROW_VECTOR, (MATRIX, MATRIX) -> MATRIX;
        SolvePositive "mdivide_left_spd" (a, b) All "a^-1 * b for a symmetric positive definite a."
            (MATRIX, VECTOR) -> VECTOR, (MATRIX, MATRIX) -> MATRIX;
        SolvePositiveRight "mdivide_right_spd" (b, a) All "b * a^-1 for a symmetric positive definite a."
            (ROW_VECTOR, MATRIX) -> ROW_VECTOR, (MATRIX, MATRIX) -> MATRIX;
        Inverse "inverse" (a) All "The inverse matrix."
            (MATRIX) -> MATRIX;
        InversePositive "inverse_spd" (a) All "The inverse of a symmetric positive definite matrix."
            (MATRIX) -> MATRIX;
        InverseOfFactor "chol2inv" (l) All "The inverse of l * l', where l is lower triangular."
            (MATRIX) -> MATRIX;
        Determinant "determinant" (a) All "The determinant."
            (MATRIX) -> REAL;
        LogDeterminant "log_determinant" (a) All "Logarithm of the absolute value of the determinant."
            (MATRIX) -> REAL;
        LogDeterminantPositive "log_determinant_spd" (a) All "Logarithm of the determinant of a symmetric positive definite matrix."
            (MATRIX) -> REAL;
        ThinQ "qr_thin_Q" (a) Constants "The orthogonal factor of a = Q R, with as many columns as a; a has at least as many rows as columns."
            (MATRIX) -> MATRIX;
        ThinR "qr_thin_R" (a) Constants "The upper triangular factor of a = Q R, its diagonal positive."
            (MATRIX) -> MATRIX;
    }
    /// Covariance matrices of Gaussian processes.
    Covariance "Gaussian process covariances" {
        ExponentiatedQuadratic "gp_exp_quad_cov" (x, sigma, length_scale) All "sigma^2 exp(-d^2 / (2 length_scale^2)), d the distance between two points of x."
            (REALS, REAL, REAL) -> MATRIX, (VECTORS, REAL, REAL) -> MATRIX;
        ExponentiatedQuadraticBetween "gp_exp_quad_cov" (x1, x2, sigma, length_scale) All "The same between the points of x1 and those of x2."
            (REALS, REALS, REAL, REAL) -> MATRIX, (VECTORS, VECTORS, REAL, REAL) -> MATRIX;
        Exponential "gp_exponential_cov" (x, sigma, length_scale) All "sigma^2 exp(-d / length_scale)."
            (REALS, REAL, REAL) -> MATRIX, (VECTORS, REAL, REAL) -> MATRIX;
        Matern32 "gp_matern32_cov" (x, sigma, length_scale) All "sigma^2 (1 + s) exp(-s), where s = sqrt(3) d / length_scale."
            (REALS, REAL, REAL) -> MATRIX, (VECTORS, REAL, REAL) -> MATRIX;
        Matern52 "gp_matern52_cov" (x, sigma, length_scale) All "sigma^2 (1 + s + s^2 / 3) exp(-s), where s = sqrt(5) d / length_scale."
            (REALS, REAL, REAL) -> MATRIX, (VECTORS, REAL, REAL) -> MATRIX;
        Periodic "gp_periodic_cov" (x, sigma, length_scale, period) All "sigma^2 exp(-2 sin(pi d / period)^2 / length_scale^2)."
            (REALS, REAL, REAL, REAL) -> MATRIX, (VECTORS, REAL, REAL, REAL) -> MATRIX;
        DotProduct "gp_dot_prod_cov" (x, sigma) All "sigma^2 plus the dot product of two points."
            (REALS, REAL) -> MATRIX, (VECTORS, REAL) -> MATRIX;
    }
}

/// Mathematical constants.
const CONSTANTS: &[(&str, f64, &str)] = &[
    ("pi", std::f64::consts::PI, "3.14159..."),
    ("e", std::f64::consts::E, "2.71828..."),
    ("sqrt2", std::f64::consts::SQRT_2, "Square root of 2."),
    ("log2", std::f64::consts::LN_2, "Natural logarithm of 2."),
    ("log10", std::f64::consts::LN_10, "Natural logarithm of 10."),
    ("not_a_number", f64::NAN, "Not a number."),
    ("positive_infinity", f64::INFINITY, "Infinity."),
    ("negative_infinity", f64::NEG_INFINITY, "Minus infinity."),
    (
        "machine_precision",
        f64::EPSILON,
        "The distance from 1 to the next larger number.",
    ),
];

/// Other names for the same functions.
const SYNONYMS: &[(&str, &str)] = &[
    ("fabs", "abs"),
    ("lmultiply", "multiply_log"),
    ("std_normal_qf", "inv_Phi"),
    ("cov_exp_quad", "gp_exp_quad_cov"),
];

/// Element by element, arrays of containers included.
const OF_EACH: &[Signature] = &[Signature {
    arguments: &[T],
    result: T_REAL,
}];

const OF_EACH_OR_INT: &[Signature] = &[
    Signature {
        arguments: &[INT],
        result: INT,
    },
    Signature {
        arguments: &[T],
        result: T_REAL,
    },
];

const TO_INT: &[Signature] = &[Signature {
    arguments: &[REAL],
    result: INT,
}];

const WITHOUT_ARGUMENTS: &[Signature] = &[Signature {
    arguments: &[],
    result: REAL,
}];

/// Every function, in the order of the reference.
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let constants = CONSTANTS
        .iter()
        .map(|&(name, value, documentation)| Function {
            name,
            parameters: &[],
            documentation,
            category: "Constants",
            stages: Stages::All,
            signatures: WITHOUT_ARGUMENTS,
            builtin: Builtin::Constant(value),
        });
    let unary = Unary::ALL
        .iter()
        .filter(|u| !u.definition().name.is_empty())
        .map(|&unary| Function {
            name: unary.definition().name,
            parameters: &["x"],
            documentation: unary.definition().documentation,
            category: "Functions of one number, element by element",
            stages: Stages::All,
            signatures: match unary {
                Unary::Abs => OF_EACH_OR_INT,
                Unary::IntStep | Unary::IsNan | Unary::IsInf => TO_INT,
                _ => OF_EACH,
            },
            builtin: Builtin::Unary(unary),
        });
    let mut functions: Vec<Function> = unary.chain(groups()).chain(constants).collect();
    for &(synonym, name) in SYNONYMS {
        let same: Vec<Function> = functions
            .iter()
            .filter(|f| f.name == name)
            .map(|f| Function {
                name: synonym,
                ..f.clone()
            })
            .collect();
        functions.extend(same);
    }
    functions
});

/// Every function; the meanings of one name need not be adjacent.
pub fn functions() -> &'static [Function] {
    &FUNCTIONS
}

/// The other names of functions, each with the name of the same function.
pub fn synonyms() -> &'static [(&'static str, &'static str)] {
    SYNONYMS
}

/// The meanings of a name.
pub fn overloads(name: &str) -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().filter(move |f| f.name == name)
}

/// The first meaning of a name.
pub fn lookup(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// Every name that [`lookup`] knows, for "did you mean".
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|f| f.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn entries_are_complete() {
        for f in functions() {
            let longest = f.signatures.iter().map(|s| s.arguments.len()).max();
            assert_eq!(longest, Some(f.parameters.len()), "{}", f.name);
            assert!(f.documentation.ends_with('.'), "{}", f.name);
            assert!(f.documentation.starts_with(|c: char| !c.is_whitespace()));
        }
        for (synonym, name) in SYNONYMS {
            assert_eq!(overloads(synonym).count(), overloads(name).count());
            assert!(lookup(name).is_some());
        }
    }

    /// Two signatures of one name with the same arguments would make the later
    /// one unreachable.
    #[test]
    fn signatures_of_one_name_differ() {
        let mut seen = BTreeSet::new();
        for f in functions() {
            for s in f.signatures {
                let arguments: Vec<String> = s.arguments.iter().map(ToString::to_string).collect();
                assert!(
                    seen.insert((f.name, arguments.clone())),
                    "{}({arguments:?}) twice",
                    f.name
                );
            }
        }
    }
}
