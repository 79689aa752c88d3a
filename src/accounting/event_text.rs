//! Events as they are written on the command line:
//! `gaussian:sensitivity=1,sigma=2,count=100`.

use super::event::{Event, EventError, Gaussian, Relation};
use super::real::Real;

const COUNT_EXPECTED: &str = "a whole number, at least 1";
const NUMBER_EXPECTED: &str = "a number above 0, such as 0.5, 12 or 1e-6";

impl Event {
    /// Reads an event; `relation` makes the sensitivity where `clip` is given.
    ///
    /// Numbers are taken as the decimals that they are, not as the nearest `f64`.
    pub fn parse(text: &str, relation: Relation) -> Result<Event, EventError> {
        let settings = Settings::read(text, true)?;
        let sigma = settings
            .sigma
            .ok_or_else(|| settings.missing("sigma", "the noise's standard deviation"))?;
        Unscaled::of(&settings, relation)?.with_sigma(sigma)
    }
}

/// An event whose noise is still to be found.
#[derive(Clone, Debug, PartialEq)]
pub struct Unscaled {
    clip: Option<Real>,
    sensitivity: Real,
    relation: Relation,
    count: u64,
}

impl Unscaled {
    /// Reads an event with `sigma` left out, for calibration.
    pub fn parse(text: &str, relation: Relation) -> Result<Unscaled, EventError> {
        let unscaled = Unscaled::of(&Settings::read(text, false)?, relation)?;
        unscaled.with_sigma(unscaled.sensitivity)?; // the other numbers are sound
        Ok(unscaled)
    }

    fn of(settings: &Settings<'_>, relation: Relation) -> Result<Unscaled, EventError> {
        let sensitivity = match (settings.sensitivity, settings.clip) {
            (Some(_), Some(_)) => {
                return Err(EventError::SensitivityTwice(settings.text.to_owned()));
            }
            (Some(sensitivity), None) => sensitivity,
            (None, Some(clip)) => relation.sensitivity(clip),
            (None, None) => {
                return Err(settings.missing(
                    "clip",
                    "the bound on one record's contribution; or give `sensitivity`",
                ));
            }
        };
        Ok(Unscaled {
            clip: settings.clip,
            sensitivity,
            relation,
            count: settings.count.unwrap_or(1),
        })
    }

    /// The event with this noise.
    pub fn with_sigma(&self, sigma: Real) -> Result<Event, EventError> {
        let what = "release";
        let gaussian = match self.clip {
            Some(clip) => Gaussian::of_clip(what, clip, self.relation, sigma)?,
            None => Gaussian::of_sensitivity(what, self.sensitivity, sigma)?,
        };
        Ok(Event::Gaussian(gaussian.times(self.count)))
    }

    pub fn sensitivity(&self) -> Real {
        self.sensitivity
    }

    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The settings of one `gaussian:` text.
struct Settings<'a> {
    text: &'a str,
    sensitivity: Option<Real>,
    clip: Option<Real>,
    sigma: Option<Real>,
    count: Option<u64>,
}

impl<'a> Settings<'a> {
    fn read(text: &'a str, takes_sigma: bool) -> Result<Settings<'a>, EventError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind.trim() {
            "gaussian" => {}
            "poisson" | "without-replacement" => {
                return Err(EventError::NotSupportedYet(kind.trim().to_owned()));
            }
            other => return Err(EventError::UnknownKind(other.to_owned())),
        }
        let mut settings = Settings {
            text,
            sensitivity: None,
            clip: None,
            sigma: None,
            count: None,
        };
        for part in rest
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| EventError::NotASetting {
                    part: part.to_owned(),
                    text: text.to_owned(),
                })?;
            settings.set(key.trim(), value.trim(), takes_sigma)?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str, takes_sigma: bool) -> Result<(), EventError> {
        let repeated = match key {
            "sensitivity" => self.sensitivity.replace(self.number(key, value)?).is_some(),
            "clip" => self.clip.replace(self.number(key, value)?).is_some(),
            "sigma" if takes_sigma => self.sigma.replace(self.number(key, value)?).is_some(),
            "count" => self.count.replace(self.whole(key, value)?).is_some(),
            _ => {
                return Err(EventError::UnknownKey {
                    key: key.to_owned(),
                    text: self.text.to_owned(),
                    expected: if takes_sigma {
                        "sensitivity or clip, sigma, count"
                    } else {
                        "sensitivity or clip, count (sigma is what is looked for)"
                    },
                });
            }
        };
        if repeated {
            return Err(EventError::RepeatedKey {
                key: key.to_owned(),
                text: self.text.to_owned(),
            });
        }
        Ok(())
    }

    fn number(&self, key: &str, value: &str) -> Result<Real, EventError> {
        match value.parse::<Real>() {
            Ok(number) if number > Real::ZERO => Ok(number),
            _ => Err(self.bad_value(key, value, NUMBER_EXPECTED)),
        }
    }

    fn whole(&self, key: &str, value: &str) -> Result<u64, EventError> {
        match value.parse::<u64>() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(self.bad_value(key, value, COUNT_EXPECTED)),
        }
    }

    fn bad_value(&self, key: &str, value: &str, expected: &'static str) -> EventError {
        EventError::BadValue {
            key: key.to_owned(),
            value: value.to_owned(),
            text: self.text.to_owned(),
            expected,
        }
    }

    fn missing(&self, key: &'static str, expected: &'static str) -> EventError {
        EventError::MissingKey {
            key,
            text: self.text.to_owned(),
            expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_form_is_read() {
        let read = |text| match Event::parse(text, Relation::Substitute).unwrap() {
            Event::Gaussian(gaussian) => gaussian,
        };
        let event = read("gaussian:sensitivity=1,sigma=2,count=100");
        assert_eq!(event.sensitivity().to_f64(), 1.0);
        assert_eq!((event.sigma().to_f64(), event.count()), (2.0, 100));
        assert_eq!(event.clip(), None);
        let event = read("gaussian: clip=0.1, sigma=1e3");
        assert_eq!(event.sensitivity(), "0.2".parse().unwrap());
        assert_eq!(
            (event.clip(), event.count()),
            (Some("0.1".parse().unwrap()), 1)
        );
    }

    // Each message names what was written and what to write instead.
    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("gaussian:sigma=1", "`clip` is missing"),
            ("gaussian:clip=1", "`sigma` is missing"),
            ("gaussian", "`sigma` is missing"),
            ("gaussian:clip=1,sigma=1,rate=0.1", "unknown key `rate`"),
            ("gaussian:clip=1,sigma=1,clip=2", "`clip` is given twice"),
            ("gaussian:clip=1,sigma", "`sigma` in"),
            ("gaussian:clip=1,sigma=abc", "`sigma=abc`"),
            ("gaussian:clip=1,sigma=0", "`sigma=0`"),
            ("gaussian:clip=-1,sigma=1", "`clip=-1`"),
            ("gaussian:clip=1,sigma=inf", "`sigma=inf`"),
            ("gaussian:clip=1,sigma=1,count=0", "at least 1"),
            ("gaussian:clip=1,sigma=1,count=1.5", "whole number"),
            ("gaussian:clip=1,sensitivity=2,sigma=1", "both"),
            ("gaussian:clip=1e-200,sigma=1", "out of range"),
            ("poisson:rate=0.01,clip=1,sigma=1", "not supported yet"),
            ("without-replacement:rate=0.01", "not supported yet"),
            ("laplace:sigma=1", "unknown kind of event `laplace`"),
        ] {
            let message = Event::parse(text, Relation::Substitute)
                .unwrap_err()
                .to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn an_event_to_calibrate_has_no_sigma() {
        let unscaled = Unscaled::parse("gaussian:clip=1,count=3", Relation::AddRemove).unwrap();
        assert_eq!(
            (unscaled.sensitivity().to_f64(), unscaled.count()),
            (1.0, 3)
        );
        let event = unscaled.with_sigma(Real::exact(2.0)).unwrap();
        let text = "gaussian:clip=1,sigma=2,count=3";
        assert_eq!(Event::parse(text, Relation::AddRemove), Ok(event));
        let message = Unscaled::parse("gaussian:clip=1,sigma=3", Relation::AddRemove)
            .unwrap_err()
            .to_string();
        assert!(message.contains("sigma is what is looked for"), "{message}");
    }
}
