//! Tables of runs that can be gone on with: one line of CSV per run, written when it is over.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use dpm::diagnostics::quantile;

use crate::chart::Point;
use crate::experiment::Course;

pub struct Table {
    path: PathBuf,
    /// Full, quick or smoke: the first column.
    form: &'static str,
    header: Vec<&'static str>,
}

impl Table {
    /// The table of that name, with what is in it of earlier calls.
    ///
    /// Errors: it exists and the course is not to be resumed, or has other columns.
    pub fn open(
        course: &Course,
        name: &str,
        columns: &[&'static str],
    ) -> Result<Table, Box<dyn Error>> {
        fs::create_dir_all(&course.out)?;
        let path = course.out.join(format!("{name}.csv"));
        let mut header = vec!["form"];
        header.extend(columns);
        let first = header.join(",");
        if path.exists() {
            let there = fs::read_to_string(&path)?;
            let place = path.display();
            if !course.resume {
                return Err(format!(
                    "{place} exists: give --resume to keep its runs and make the others, or another --out"
                )
                .into());
            }
            if there.lines().next() != Some(&first) {
                return Err(
                    format!("{place} has other columns than {first}: give another --out").into(),
                );
            }
        } else {
            fs::write(&path, format!("{first}\n"))?;
        }
        Ok(Table {
            path,
            form: course.form.name(),
            header,
        })
    }

    /// Whether there is a line that begins with `key`.
    pub fn has(&self, key: &[String]) -> Result<bool, Box<dyn Error>> {
        Ok(self.rows()?.iter().any(|row| row.starts_with(key)))
    }

    /// Adds a line and says so.
    pub fn add(&self, row: Vec<String>) -> Result<(), Box<dyn Error>> {
        eprintln!("{}", row.join(","));
        self.add_quietly(std::iter::once(row))
    }

    pub fn add_quietly(
        &self,
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Result<(), Box<dyn Error>> {
        let lines: String = rows
            .map(|row| format!("{},{}\n", self.form, row.join(",")))
            .collect();
        OpenOptions::new()
            .append(true)
            .open(&self.path)?
            .write_all(lines.as_bytes())?;
        Ok(())
    }

    /// The lines of this form, without that column.
    pub fn rows(&self) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
        let mut rows = Vec::new();
        for record in csv::Reader::from_path(&self.path)?.records() {
            let record = record?;
            if record.get(0) == Some(self.form) {
                rows.push(record.iter().skip(1).map(str::to_string).collect());
            }
        }
        Ok(rows)
    }

    fn position(&self, column: &str) -> Result<usize, String> {
        let at = self.header.iter().position(|name| *name == column);
        at.map(|at| at - 1)
            .ok_or_else(|| format!("no column {column}"))
    }

    /// The values of `column` by the values of the columns `by`, in order of appearance.
    pub fn groups(&self, by: &[&str], column: &str) -> Result<Vec<Group>, Box<dyn Error>> {
        let places: Vec<usize> = by
            .iter()
            .map(|name| self.position(name))
            .collect::<Result<_, _>>()?;
        let at = self.position(column)?;
        let mut groups: Vec<Group> = Vec::new();
        for row in self.rows()? {
            let key: Vec<String> = places.iter().map(|&p| row[p].clone()).collect();
            let value: f64 = row[at].parse()?;
            match groups.iter_mut().find(|group| group.key == key) {
                Some(group) => group.values.push(value),
                None => groups.push(Group {
                    key,
                    values: vec![value],
                }),
            }
        }
        Ok(groups)
    }

    /// Prints median and quartiles of `columns` by the values of the columns `by`.
    pub fn print(&self, by: &[&str], columns: &[&str]) -> Result<(), Box<dyn Error>> {
        let of: Vec<Vec<Group>> = columns
            .iter()
            .map(|column| self.groups(by, column))
            .collect::<Result<_, _>>()?;
        println!("| {} | runs | {} |", by.join(" | "), columns.join(" | "));
        println!("|{}", "---|".repeat(by.len() + 1 + columns.len()));
        for (i, group) in of.first().into_iter().flatten().enumerate() {
            let cells: Vec<String> = of.iter().map(|groups| groups[i].cell()).collect();
            println!(
                "| {} | {} | {} |",
                group.key.join(" | "),
                group.values.len(),
                cells.join(" | ")
            );
        }
        Ok(())
    }
}

/// Runs with the same settings.
pub struct Group {
    pub key: Vec<String>,
    pub values: Vec<f64>,
}

impl Group {
    /// Ignores NaN, of which there are only some where a sampler has no such number.
    pub fn quantile(&self, probability: f64) -> f64 {
        let known: Vec<f64> = self
            .values
            .iter()
            .copied()
            .filter(|v| !v.is_nan())
            .collect();
        if known.is_empty() {
            return f64::NAN;
        }
        quantile(std::slice::from_ref(&known), probability)
    }

    /// Median and quartiles, over a place on the other axis.
    pub fn point(&self, x: f64) -> Point {
        Point {
            x,
            y: self.quantile(0.5),
            band: Some((self.quantile(0.25), self.quantile(0.75))),
        }
    }

    fn cell(&self) -> String {
        let [median, low, high] = [0.5, 0.25, 0.75].map(|p| self.quantile(p));
        match (median.is_nan(), self.values.len()) {
            (true, _) => "".into(),
            (_, 1) => number(median),
            _ => format!("{} [{}, {}]", number(median), number(low), number(high)),
        }
    }
}

/// Three digits or so.
pub fn number(x: f64) -> String {
    match x.abs() {
        a if a >= 1000.0 || x.fract() == 0.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        a if a >= 0.01 => format!("{x:.3}"),
        _ => format!("{x:.2e}"),
    }
}
