//! The columns by which a formula's coefficients are multiplied, coded as R codes them.

use super::codebook::{Codebook, Content, typical};
use super::guess::Guess;
use super::tree::{Atom, Formula, Function, Named, Sum, Term, Variable};
use crate::syntax::{Diagnostic, did_you_mean, is_name};

/// A number of a record: a column or a function of one.
#[derive(Debug)]
pub(super) struct Number {
    pub column: String,
    pub function: Option<Function>,
    /// Ends of its values.
    pub range: (f64, f64),
    pub is_int: bool,
    /// Used as it is: 0 or 1.
    pub is_binary: bool,
    /// The model uses (value - centre) / scale.
    pub centre: f64,
    pub scale: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Number {
        number: usize,
        power: u32,
    },
    /// 1 where the column has this level, counted from 1.
    Level {
        column: String,
        level: usize,
    },
}

/// A product of parts, one column of the design; without any, that of the intercept.
#[derive(Debug, Clone)]
pub(super) struct Column(pub Vec<Part>);

impl Column {
    pub fn is(&self, other: &Column) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|part| other.0.contains(part))
    }

    /// With the power of a number less by one.
    fn reduced(&self, number: usize) -> Column {
        let less = |part: &Part| match *part {
            Part::Number { number: n, power } if n == number => (power > 1).then(|| Part::Number {
                number,
                power: power - 1,
            }),
            _ => Some(part.clone()),
        };
        Column(self.0.iter().filter_map(less).collect())
    }

    pub fn power_of(&self, number: usize) -> u32 {
        let powers = self.0.iter().map(|part| match *part {
            Part::Number { number: n, power } if n == number => power,
            _ => 0,
        });
        powers.sum()
    }
}

/// The columns of one sum.
#[derive(Debug)]
pub(super) struct Block {
    pub intercept: bool,
    pub columns: Vec<Column>,
}

impl Block {
    fn has(&self, column: &Column) -> bool {
        if column.0.is_empty() {
            self.intercept
        } else {
            self.columns.iter().any(|c| c.is(column))
        }
    }

    /// Whether the column is the mean of a level, in place of an intercept.
    pub fn is_mean(&self, column: &Column) -> bool {
        let is_level = matches!(column.0[..], [Part::Level { .. }]);
        is_level && !self.intercept
    }
}

#[derive(Debug)]
pub(super) struct GroupBlock {
    pub by: String,
    pub count: usize,
    /// Subtracted from the column, so that the model counts from 1.
    pub before_first: i64,
    pub block: Block,
    pub correlated: bool,
}

#[derive(Debug)]
pub(super) struct Design {
    pub numbers: Vec<Number>,
    pub population: Block,
    pub groups: Vec<GroupBlock>,
}

/// Looks columns up, and collects what is wrong.
pub(super) struct Reader<'a> {
    pub book: &'a Codebook,
    pub errors: Vec<Diagnostic>,
    numbers: Vec<Number>,
}

impl<'a> Reader<'a> {
    pub fn new(book: &'a Codebook) -> Self {
        Reader {
            book,
            errors: Vec::new(),
            numbers: Vec::new(),
        }
    }

    pub fn error(&mut self, at: &Named, message: String, help: String) {
        self.errors
            .push(Diagnostic::error("F003", at.span, message).help(help));
    }

    pub fn content(&mut self, column: &Named) -> Option<Content> {
        let name = &column.name;
        let Some(entry) = self.book.entry(name) else {
            let names: Vec<&String> = self.book.names().collect();
            let message = format!("the codebook has no column `{name}`");
            let help = match did_you_mean(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "add it to the codebook, for example `{name}: {{type: float, lower: 0, upper: 100}}`"
                ),
            };
            self.error(column, message, help);
            return None;
        };
        if !is_name(name) {
            let plain = as_name(name);
            let message = format!("`{name}` cannot be the name of a column in a program");
            let help = format!(
                "call it `{plain}` in the codebook and the formula, and say where it is read from with `--columns {plain}={name}` of `dpm sample`"
            );
            self.error(column, message, help);
            return None;
        }
        match entry.content(name) {
            Ok(content) => Some(content),
            Err(lack) => {
                self.error(column, lack.message, lack.help);
                None
            }
        }
    }

    /// The range of a variable's values; `None` after an error, or for levels.
    pub fn range(&mut self, variable: &Variable) -> Option<((f64, f64), bool)> {
        let (name, content) = (&variable.column, self.content(&variable.column)?);
        let (lower, upper, is_int) = match content {
            Content::Real { lower, upper } => (lower, upper, false),
            Content::Int { lower, upper } => (lower as f64, upper as f64, true),
            Content::Binary => (0.0, 1.0, true),
            Content::Levels(_) => {
                let message = format!("`{}` has levels, and a number is expected here", name.name);
                let help = "use the column by itself, or give it bounds in the codebook".to_owned();
                self.error(name, message, help);
                return None;
            }
        };
        let Some(function) = variable.function else {
            return Some(((lower, upper), is_int));
        };
        let range = (function.apply(lower), function.apply(upper));
        if !range.0.is_finite() || !range.1.is_finite() {
            let word = function.name();
            let message = format!(
                "`{word}({})` does not exist at `lower: {lower}`, which the codebook says",
                name.name
            );
            let help = "set `lower` to the smallest value that is possible where the function exists; smaller values are moved to it. `log1p` is there for values from 0".to_owned();
            self.error(name, message, help);
            return None;
        }
        Some((range, false))
    }

    /// The columns of the whole formula, standardised where that does not change the model.
    pub fn design(
        mut self,
        formula: &Formula,
        has_thresholds: bool,
    ) -> Result<Design, Vec<Diagnostic>> {
        let intercept = formula.sum.intercept || has_thresholds;
        let population = self.block(&formula.sum, intercept);
        let mut groups: Vec<GroupBlock> = Vec::new();
        for group in &formula.groups {
            let block = self.block(&group.sum, group.sum.intercept);
            let Some((count, before_first)) = self.levels_of(&group.by) else {
                continue;
            };
            let by = &group.by.name;
            let again = groups.iter().filter(|g| g.by == *by).any(|g| {
                let twice = g.block.intercept && block.intercept;
                twice || g.block.columns.iter().any(|c| block.has(c))
            });
            if again {
                let message = format!("something varies by `{by}` twice");
                self.error(&group.by, message, "leave one of them out".to_owned());
                continue;
            }
            groups.push(GroupBlock {
                by: by.clone(),
                count,
                before_first,
                block,
                correlated: group.correlated,
            });
        }
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let blocks: Vec<&Block> = groups.iter().map(|g| &g.block).collect();
        for (i, number) in self.numbers.iter_mut().enumerate() {
            if number.is_binary {
                continue;
            }
            // A shift changes nothing if the terms that it adds are in the model too.
            let may_shift = |block: &Block| {
                let mut with_it = block.columns.iter().filter(|c| c.power_of(i) > 0);
                with_it.all(|column| block.has(&column.reduced(i)))
            };
            let (lower, upper) = number.range;
            let centred = may_shift(&population) && blocks.iter().all(|block| may_shift(block));
            let guess = match number.function {
                None => self.book.guess(&number.column).and_then(Guess::moments),
                Some(_) => None,
            };
            (number.centre, number.scale) = match (centred, guess) {
                (true, Some(moments)) => moments,
                (true, None) => typical(lower, upper),
                (false, _) => (0.0, lower.abs().max(upper.abs()) / 2.0),
            };
            number.centre = rounded(number.centre);
            number.scale = rounded(number.scale);
        }
        Ok(Design {
            numbers: self.numbers,
            population,
            groups,
        })
    }

    fn block(&mut self, sum: &Sum, intercept: bool) -> Block {
        let mut block = Block {
            intercept,
            columns: Vec::new(),
        };
        for term in &sum.terms {
            for column in self.columns(term, sum, intercept) {
                if !block.has(&column) {
                    block.columns.push(column);
                }
            }
        }
        block
    }

    fn columns(&mut self, term: &Term, sum: &Sum, intercept: bool) -> Vec<Column> {
        let mut all = vec![Column(Vec::new())];
        for (i, atom) in term.0.iter().enumerate() {
            // R's rule: contrasts if the term without the factor is in the model.
            let mut others = term.0.clone();
            others.remove(i);
            let without = Term(others);
            let has_margin = if without.0.is_empty() {
                intercept
            } else {
                sum.terms.iter().any(|t| t.is(&without))
            };
            let choices = self.parts(atom, has_margin);
            let product = |column: &Column, part: &Part| {
                let mut parts = column.0.clone();
                // `x:I(x^2)` is the third power.
                let same = parts.iter_mut().find_map(|p| match (p, part) {
                    (Part::Number { number, power }, Part::Number { number: n, .. })
                        if number == n =>
                    {
                        Some(power)
                    }
                    _ => None,
                });
                match (same, part) {
                    (Some(power), Part::Number { power: more, .. }) => *power += more,
                    _ => parts.push(part.clone()),
                }
                Column(parts)
            };
            let products = all
                .iter()
                .flat_map(|c| choices.iter().map(|p| product(c, p)));
            all = products.take(MOST_COLUMNS + 1).collect();
            if all.len() > MOST_COLUMNS {
                let message = format!("this term has more than {MOST_COLUMNS} coefficients");
                let help = "leave it out, or give its factors fewer levels".to_owned();
                self.error(&atom.variable.column, message, help);
                return Vec::new();
            }
        }
        all
    }

    fn parts(&mut self, atom: &Atom, has_margin: bool) -> Vec<Part> {
        let variable = &atom.variable;
        let column = &variable.column;
        let plain = variable.function.is_none() && atom.power == 1;
        if plain
            && let Some(entry) = self.book.entry(&column.name)
            && let Ok(Content::Levels(levels)) = entry.content(&column.name)
            && is_name(&column.name)
        {
            let first = if has_margin { 2 } else { 1 };
            let level = |level| Part::Level {
                column: column.name.clone(),
                level,
            };
            return (first..=levels.len()).map(level).collect();
        }
        let same = |n: &Number| n.column == column.name && n.function == variable.function;
        if let Some(number) = self.numbers.iter().position(same) {
            return vec![Part::Number {
                number,
                power: atom.power,
            }];
        }
        let Some((range, is_int)) = self.range(variable) else {
            return Vec::new();
        };
        self.numbers.push(Number {
            column: column.name.clone(),
            function: variable.function,
            range,
            is_int,
            is_binary: is_int && range == (0.0, 1.0),
            centre: 0.0,
            scale: 1.0,
        });
        vec![Part::Number {
            number: self.numbers.len() - 1,
            power: atom.power,
        }]
    }

    /// How many groups there are, and the number before the first.
    fn levels_of(&mut self, by: &Named) -> Option<(usize, i64)> {
        let (count, before) = match self.content(by)? {
            Content::Levels(levels) => (levels.len(), 0),
            Content::Int { lower, upper } => (usize::try_from(upper - lower).ok()? + 1, lower - 1),
            Content::Binary => (2, -1),
            Content::Real { .. } => {
                let message = format!("`{}` is not a group: it is a float", by.name);
                let help = format!(
                    "say `type: int` with bounds, or `levels`, for `{}` in the codebook",
                    by.name
                );
                self.error(by, message, help);
                return None;
            }
        };
        if count > MOST_GROUPS {
            let message = format!(
                "`{}` has {count} groups, and {MOST_GROUPS} are the most",
                by.name
            );
            let help = "group by something coarser".to_owned();
            self.error(by, message, help);
            return None;
        }
        Some((count, before))
    }
}

/// The most coefficients of a term, and the most groups: none of the samplers could tell of more.
const MOST_COLUMNS: usize = 1_000;
const MOST_GROUPS: usize = 10_000;

/// To four digits: a centre and a scale are only near to the column's.
pub(super) fn rounded(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

/// Letters, digits and underscores of a text.
pub(super) fn as_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.trim().chars().map(plain).collect();
    if is_name(&name) {
        name
    } else {
        format!("x_{name}")
    }
}
