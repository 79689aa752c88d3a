//! Zarr folders of draws, in the layout of arviz's InferenceData (a tree of data sets).
//!
//! The second version of the format, which readers of the third read too: a folder per group
//! and array, their metadata in JSON (all of it once more in `.zmetadata`), and for each array
//! one chunk of little-endian numbers in C order, not compressed. xarray finds the names of an
//! array's dimensions in `_ARRAY_DIMENSIONS`.
//!
//! Groups: `posterior`, and `sample_stats` with the sampler's statistics under arviz's names. There
//! is no `observed_data`: the data are private.
//!
//! Reference: Zarr storage specification version 2; xarray's "Zarr encoding specification";
//! arviz's "InferenceData schema specification".

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::run::Run;

/// A file of the folder: its path inside and its bytes.
pub(super) type File = (String, Vec<u8>);

/// Names of arviz for the sampler's columns, without the `__`.
const STATISTICS: [(&str, &str); 5] = [
    ("accept_stat", "acceptance_rate"),
    ("stepsize", "step_size"),
    ("n_leapfrog", "n_steps"),
    ("treedepth", "tree_depth"),
    ("divergent", "diverging"),
];

/// All files of a run's folder. `attributes` are set on the root and on each group.
pub(super) fn folder(run: &Run, attributes: &Map<String, Value>) -> Vec<File> {
    let mut zarr = Zarr::default();
    zarr.group("", attributes);
    let draws = run.draws();
    let lengths = draws.chains().iter().map(Vec::len);
    let sizes = [draws.chains().len(), lengths.min().unwrap_or(0)];

    zarr.group("posterior/", attributes);
    zarr.coordinates("posterior/", sizes);
    for variable in variables(draws.names()) {
        let value = |chain: usize, draw: usize, column: usize| draws.chains()[chain][draw][column];
        zarr.variable("posterior/", &variable, sizes, value);
    }

    zarr.group("sample_stats/", attributes);
    zarr.coordinates("sample_stats/", sizes);
    let columns = run.chains().first().map_or(&[][..], |c| &c.columns);
    for (column, name) in columns.iter().enumerate() {
        // lp__ is NaN: the log density is never released.
        let Some(name) = name.strip_suffix("__").filter(|&name| name != "lp") else {
            continue;
        };
        let own = STATISTICS.iter().find(|(ours, _)| *ours == name);
        let name = own.map_or(name, |(_, arviz)| arviz);
        let values = |chain: usize, draw: usize| {
            let row = run.chains().get(chain).and_then(|c| c.draws.get(draw));
            row.and_then(|row| row.get(column))
                .copied()
                .unwrap_or(f64::NAN)
        };
        zarr.statistic("sample_stats/", name, sizes, values);
    }
    zarr.finish()
}

/// A variable and the places of its elements among the columns, the last index fastest.
struct Variable {
    name: String,
    sizes: Vec<usize>,
    columns: Vec<usize>,
}

/// The indices of an element, and its column.
type Element = (Vec<usize>, usize);

/// Groups elements: `m[1,1]`, `m[2,1]`, ... are one variable `m`. Names that do not fill a whole
/// container are variables of their own.
fn variables(names: &[String]) -> Vec<Variable> {
    let mut found: Vec<(&str, Vec<Element>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (column, name) in names.iter().enumerate() {
        let (stem, index) = element(name);
        let place = *places.entry(stem).or_insert_with(|| {
            found.push((stem, Vec::new()));
            found.len() - 1
        });
        found[place].1.push((index, column));
    }
    let mut variables = Vec::new();
    for (stem, mut elements) in found {
        elements.sort();
        match container(&elements) {
            Some(sizes) => variables.push(Variable {
                name: stem.to_owned(),
                sizes,
                columns: elements.into_iter().map(|(_, column)| column).collect(),
            }),
            None => variables.extend(elements.into_iter().map(|(_, column)| Variable {
                name: names[column].clone(),
                sizes: Vec::new(),
                columns: vec![column],
            })),
        }
    }
    variables
}

/// `m` and 2, 1 of `m[2,1]`.
fn element(name: &str) -> (&str, Vec<usize>) {
    let parts = name.strip_suffix(']').and_then(|n| n.split_once('['));
    let indices = |list: &str| -> Option<Vec<usize>> {
        let index = |text: &str| text.parse().ok().filter(|&i: &usize| i > 0);
        list.split(',').map(index).collect()
    };
    match parts.and_then(|(stem, list)| Some((stem, indices(list)?))) {
        Some(element) => element,
        None => (name, Vec::new()),
    }
}

/// The sizes of the container that these elements, in the order of their indices, fill.
fn container(elements: &[Element]) -> Option<Vec<usize>> {
    let (last, _) = elements.last()?;
    let total = last.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    if total != Some(elements.len()) {
        return None;
    }
    // The right number, each different and none beyond the last in any direction.
    let fits = |(index, _): &Element| {
        index.len() == last.len() && index.iter().zip(last).all(|(i, size)| i <= size)
    };
    let different = elements.windows(2).all(|pair| pair[0].0 < pair[1].0);
    (different && elements.iter().all(fits)).then(|| last.clone())
}

/// The folder under construction.
#[derive(Default)]
struct Zarr {
    files: Vec<File>,
    /// The contents of `.zmetadata`.
    metadata: Map<String, Value>,
}

impl Zarr {
    fn group(&mut self, path: &str, attributes: &Map<String, Value>) {
        self.json(format!("{path}.zgroup"), json!({ "zarr_format": 2 }));
        self.json(format!("{path}.zattrs"), Value::Object(attributes.clone()));
    }

    fn coordinates(&mut self, group: &str, sizes: [usize; 2]) {
        for (name, size) in ["chain", "draw"].into_iter().zip(sizes) {
            self.index(group, name, size);
        }
    }

    /// 0, 1, 2, ...: the coordinate of a dimension of its name.
    fn index(&mut self, group: &str, name: &str, size: usize) {
        let bytes = (0..size as i64).flat_map(i64::to_le_bytes).collect();
        self.array(group, name, "<i8", &[size], &[name.to_owned()], bytes);
    }

    fn variable(
        &mut self,
        group: &str,
        variable: &Variable,
        [chains, draws]: [usize; 2],
        value: impl Fn(usize, usize, usize) -> f64,
    ) {
        let mut bytes = Vec::with_capacity(8 * chains * draws * variable.columns.len());
        for chain in 0..chains {
            for draw in 0..draws {
                for &column in &variable.columns {
                    bytes.extend(value(chain, draw, column).to_le_bytes());
                }
            }
        }
        let mut shape = vec![chains, draws];
        let mut dimensions = vec!["chain".to_owned(), "draw".to_owned()];
        for (k, &size) in variable.sizes.iter().enumerate() {
            let dimension = format!("{}_dim_{k}", variable.name);
            self.index(group, &dimension, size);
            shape.push(size);
            dimensions.push(dimension);
        }
        self.array(group, &variable.name, "<f8", &shape, &dimensions, bytes);
    }

    fn statistic(
        &mut self,
        group: &str,
        name: &str,
        [chains, draws]: [usize; 2],
        value: impl Fn(usize, usize) -> f64,
    ) {
        let each = (0..chains).flat_map(|chain| (0..draws).map(move |draw| (chain, draw)));
        let values = each.map(|(chain, draw)| value(chain, draw));
        let (kind, bytes): (&str, Vec<u8>) = match name {
            "diverging" => ("|b1", values.map(|v| u8::from(v != 0.0)).collect()),
            _ => ("<f8", values.flat_map(f64::to_le_bytes).collect()),
        };
        let dimensions = ["chain".to_owned(), "draw".to_owned()];
        self.array(group, name, kind, &[chains, draws], &dimensions, bytes);
    }

    fn array(
        &mut self,
        group: &str,
        name: &str,
        kind: &str,
        shape: &[usize],
        dimensions: &[String],
        bytes: Vec<u8>,
    ) {
        // A chunk has no empty side, even if its array has one.
        let chunks: Vec<usize> = shape.iter().map(|&size| size.max(1)).collect();
        let header = json!({
            "zarr_format": 2,
            "shape": shape,
            "chunks": chunks,
            "dtype": kind,
            "compressor": null,
            "fill_value": null,
            "order": "C",
            "filters": null,
        });
        self.json(format!("{group}{name}/.zarray"), header);
        self.json(
            format!("{group}{name}/.zattrs"),
            json!({ "_ARRAY_DIMENSIONS": dimensions }),
        );
        if !bytes.is_empty() {
            let chunk = vec!["0"; shape.len()].join(".");
            self.files.push((format!("{group}{name}/{chunk}"), bytes));
        }
    }

    fn json(&mut self, path: String, value: Value) {
        self.files.push((path.clone(), value.to_string().into()));
        self.metadata.insert(path, value);
    }

    /// The metadata of the whole tree, and of each group by itself.
    fn finish(mut self) -> Vec<File> {
        for group in ["", "posterior/", "sample_stats/"] {
            let inside: Map<String, Value> = self
                .metadata
                .iter()
                .filter_map(|(path, value)| Some((path.strip_prefix(group)?, value)))
                .map(|(path, value)| (path.to_owned(), value.clone()))
                .collect();
            let all = json!({ "zarr_consolidated_format": 1, "metadata": inside });
            let path = format!("{group}.zmetadata");
            self.files.push((path, all.to_string().into()));
        }
        self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(names: &[&str]) -> Vec<(String, Vec<usize>, Vec<usize>)> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let shape = |v: Variable| (v.name, v.sizes, v.columns);
        variables(&names).into_iter().map(shape).collect()
    }

    #[test]
    fn elements_become_containers_with_the_last_index_fastest() {
        let found = shapes(&[
            "a", "m[1,1]", "m[2,1]", "m[1,2]", "m[2,2]", "m[1,3]", "m[2,3]", "b[1]",
        ]);
        let expected = [
            ("a", vec![], vec![0]),
            ("m", vec![2, 3], vec![1, 3, 5, 2, 4, 6]),
            ("b", vec![1], vec![7]),
        ];
        assert_eq!(found, expected.map(|(n, s, c)| (n.to_string(), s, c)));
    }

    // Wrong here: an array with values of another element, or an index out of range.
    #[test]
    fn names_that_fill_no_container_stand_for_themselves() {
        for names in [
            &["b[1]", "b[3]"][..],
            &["b[2]"],
            &["b[1]", "b[1]"],
            &["b[1]", "b[1,1]"],
            &["b[0]"],
            &["b[x]"],
            &["b", "b[1]"],
            &["b[1,4]", "b[2,1]"],
            &["b[18446744073709551615,2]"],
        ] {
            let found = shapes(names);
            let mut alone: Vec<&str> = found.iter().map(|v| v.0.as_str()).collect();
            let mut names = names.to_vec();
            alone.sort_unstable();
            names.sort_unstable();
            assert_eq!(alone, names, "{found:?}");
            assert!(found.iter().all(|v| v.1.is_empty() && v.2.len() == 1));
        }
    }
}
