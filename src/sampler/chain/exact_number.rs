//! Numbers in checkpoints, which are read back to the bit as they were written.
//!
//! JSON has no infinities and no NaN, which a diverged chain may hold; they are written as
//! words. All other numbers are written with enough digits to be distinguished.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Word(String),
}

impl Number {
    fn of(x: f64) -> Number {
        if x.is_finite() {
            Number::Finite(x)
        } else {
            Number::Word(x.to_string())
        }
    }

    fn value<E: serde::de::Error>(self) -> Result<f64, E> {
        match self {
            Number::Finite(x) => Ok(x),
            Number::Word(word) => word.parse().map_err(E::custom),
        }
    }
}

/// One number.
pub fn serialize<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number::of(*x).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer)?.value()
}

/// Several.
pub mod list {
    use super::*;

    pub fn serialize<S: Serializer>(xs: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(xs.iter().map(|&x| Number::of(x)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Vec::<Number>::deserialize(deserializer)?
            .into_iter()
            .map(Number::value)
            .collect()
    }
}

/// Several, or none at all.
pub mod option_list {
    use super::*;

    pub fn serialize<S: Serializer>(
        xs: &Option<Vec<f64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let numbers: Option<Vec<Number>> = xs
            .as_ref()
            .map(|xs| xs.iter().map(|&x| Number::of(x)).collect());
        numbers.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<f64>>, D::Error> {
        let numbers = Option::<Vec<Number>>::deserialize(deserializer)?;
        numbers
            .map(|numbers| numbers.into_iter().map(Number::value).collect())
            .transpose()
    }
}

/// A word count of a generator, which is larger than other readers of JSON accept.
pub mod position {
    use super::*;

    pub fn serialize<S: Serializer>(position: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(position)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super::list")]
        several: Vec<f64>,
    }

    // If it failed: a resumed chain would differ from the one that was stopped.
    #[test]
    fn numbers_come_back_to_the_bit() {
        let ugly = vec![
            0.1,
            -0.0,
            5e-324,
            f64::MAX,
            1.0 / 3.0,
            1e23,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        let text = serde_json::to_string(&Numbers {
            one: f64::NAN,
            several: ugly.clone(),
        })
        .unwrap();
        let back: Numbers = serde_json::from_str(&text).unwrap();
        assert!(back.one.is_nan());
        let bits = |xs: &[f64]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back.several), bits(&ugly));
    }
}
