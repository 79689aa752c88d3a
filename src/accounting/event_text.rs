//! Events as they are written on the command line:
//! `gaussian:sensitivity=1,sigma=2,count=100`,
//! `poisson:rate=0.01,clip=1,sigma=1,count=1000`, `barker:batch=1000,rows=100000,count=500`.

use super::barker::Barker;
use super::event::Event;
use super::event_error::EventError;
use super::real::Real;
use super::relation::Relation;
use super::release::Gaussian;
use super::subsampled::Subsampled;

const COUNT_EXPECTED: &str = "a whole number, at least 1";
const NUMBER_EXPECTED: &str = "a number above 0, such as 0.5, 12 or 1e-6";
const RATE_EXPECTED: &str = "a number from 0 to 1, such as 0.01";

impl Event {
    /// Reads an event; `relation` determines the sensitivity where `clip` is given.
    ///
    /// Numbers are read as exact decimals, not as the nearest `f64`.
    pub fn parse(text: &str, relation: Relation) -> Result<Event, EventError> {
        let settings = Settings::read(text, false)?;
        if settings.kind != Kind::Barker && settings.sigma.is_none() {
            return Err(settings.missing("sigma", "the noise's standard deviation"));
        }
        Unscaled::of(&settings, relation)?.with_sigma(Real::ONE)
    }
}

/// How rows are drawn, as the text of an event begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gaussian,
    Poisson,
    WithoutReplacement,
    Barker,
}

impl Kind {
    const ALL: [(&str, Kind); 4] = [
        ("gaussian", Kind::Gaussian),
        ("poisson", Kind::Poisson),
        ("without-replacement", Kind::WithoutReplacement),
        ("barker", Kind::Barker),
    ];

    /// The keys that an event of this kind takes, for messages.
    fn keys(self, calibrated: bool) -> &'static str {
        match (self, calibrated) {
            (Kind::Barker, _) => "batch, rows, count",
            (Kind::Gaussian, false) => "sensitivity or clip, sigma, count",
            (_, false) => "rate, clip, sigma, count",
            (Kind::Gaussian, true) => {
                "sensitivity or clip, count, and scale where sigma is what is looked for"
            }
            (_, true) => "rate, clip, count, and scale where sigma is what is looked for",
        }
    }
}

/// An event whose noise may still be unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Unscaled {
    kind: Kind,
    rate: Real,
    /// Size of the batch, and number of rows.
    barker: Option<(u64, u64)>,
    clip: Option<Real>,
    sensitivity: Real,
    relation: Relation,
    noise: Noise,
    count: u64,
}

/// The noise's standard deviation: known, or a multiple of the number looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    Known(Real),
    Unknown { scale: Real },
}

impl Unscaled {
    /// Whether the text begins as one of the kinds of events does.
    pub fn is_of_some_kind(text: &str) -> bool {
        let kind = text.split_once(':').map(|(kind, _)| kind.trim());
        Kind::ALL.iter().any(|&(name, _)| Some(name) == kind)
    }

    /// Reads an event for calibration. Its sigma is `scale` (1 unless given) times the
    /// number looked for, or fixed where `sigma` is given.
    pub fn parse(text: &str, relation: Relation) -> Result<Unscaled, EventError> {
        let unscaled = Unscaled::of(&Settings::read(text, true)?, relation)?;
        unscaled.with_sigma(unscaled.sensitivity)?; // the other numbers are sound
        Ok(unscaled)
    }

    fn of(settings: &Settings<'_>, relation: Relation) -> Result<Unscaled, EventError> {
        if settings.kind == Kind::Barker {
            return Unscaled::barker(settings, relation);
        }
        let sensitivity = match (settings.sensitivity, settings.clip) {
            (Some(_), Some(_)) => {
                return Err(EventError::SensitivityTwice(settings.text.to_owned()));
            }
            (Some(sensitivity), None) => sensitivity,
            (None, Some(clip)) => relation.sensitivity(clip),
            (None, None) if settings.kind == Kind::Gaussian => {
                return Err(settings.missing(
                    "clip",
                    "the bound on one record's contribution; or give `sensitivity`",
                ));
            }
            (None, None) => {
                return Err(settings.missing("clip", "the bound on one record's contribution"));
            }
        };
        let rate = match (settings.kind, settings.rate) {
            (Kind::Gaussian, _) => Real::ONE,
            (_, Some(rate)) => rate,
            (_, None) => {
                return Err(settings.missing("rate", "the share of rows in each release"));
            }
        };
        let noise = match (settings.sigma, settings.scale) {
            (Some(_), Some(_)) => return Err(EventError::SigmaTwice(settings.text.to_owned())),
            (Some(sigma), None) => Noise::Known(sigma),
            (None, scale) => Noise::Unknown {
                scale: scale.unwrap_or(Real::ONE),
            },
        };
        Ok(Unscaled {
            kind: settings.kind,
            rate,
            barker: None,
            clip: settings.clip,
            sensitivity,
            relation,
            noise,
            count: settings.count.unwrap_or(1),
        })
    }

    /// Its noise is not to be chosen.
    fn barker(settings: &Settings<'_>, relation: Relation) -> Result<Unscaled, EventError> {
        if relation != Relation::Substitute {
            return Err(EventError::BarkerRelation(relation));
        }
        let Some(batch) = settings.batch else {
            return Err(settings.missing("batch", "the number of rows in each test"));
        };
        let Some(rows) = settings.rows else {
            return Err(settings.missing("rows", "the number of rows in all"));
        };
        Ok(Unscaled {
            kind: Kind::Barker,
            rate: Barker::new("", batch, rows)?.rate(),
            barker: Some((batch, rows)),
            clip: None,
            sensitivity: Real::ONE,
            relation,
            noise: Noise::Known(Real::ONE),
            count: settings.count.unwrap_or(1),
        })
    }

    /// The event where the number looked for is `sigma`.
    pub fn with_sigma(&self, sigma: Real) -> Result<Event, EventError> {
        self.with_noise(match self.noise {
            Noise::Known(known) => known,
            Noise::Unknown { scale } => sigma * scale,
        })
    }

    fn with_noise(&self, sigma: Real) -> Result<Event, EventError> {
        let what = "release";
        if let Some((batch, rows)) = self.barker {
            return Ok(Event::Barker(
                Barker::new(what, batch, rows)?.times(self.count),
            ));
        }
        // `of` has checked that there is a clip bound wherever the kind needs one.
        let clip = self.clip.unwrap_or(self.sensitivity);
        let (relation, rate, count) = (self.relation, self.rate, self.count);
        Ok(match self.kind {
            // Dealt with above.
            Kind::Barker | Kind::Gaussian => {
                let gaussian = match self.clip {
                    Some(clip) => Gaussian::of_clip(what, clip, relation, sigma)?,
                    None => Gaussian::of_sensitivity(what, self.sensitivity, sigma)?,
                };
                Event::Gaussian(gaussian.times(count))
            }
            Kind::Poisson => Event::Subsampled(
                Subsampled::poisson(what, clip, relation, rate, sigma)?.times(count),
            ),
            Kind::WithoutReplacement => Event::Subsampled(
                Subsampled::without_replacement(what, clip, relation, rate, sigma)?.times(count),
            ),
        })
    }

    /// Whether its noise is still unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self.noise, Noise::Unknown { .. })
    }

    pub fn sensitivity(&self) -> Real {
        self.sensitivity
    }

    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The settings of one event's text.
struct Settings<'a> {
    text: &'a str,
    kind: Kind,
    rate: Option<Real>,
    sensitivity: Option<Real>,
    clip: Option<Real>,
    sigma: Option<Real>,
    scale: Option<Real>,
    batch: Option<u64>,
    rows: Option<u64>,
    count: Option<u64>,
}

impl<'a> Settings<'a> {
    fn read(text: &'a str, calibrated: bool) -> Result<Settings<'a>, EventError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let (_, kind) = Kind::ALL
            .into_iter()
            .find(|(known, _)| *known == name.trim())
            .ok_or_else(|| EventError::UnknownKind(name.trim().to_owned()))?;
        let mut settings = Settings {
            text,
            kind,
            rate: None,
            sensitivity: None,
            clip: None,
            sigma: None,
            scale: None,
            batch: None,
            rows: None,
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
            settings.set(key.trim(), value.trim(), calibrated)?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str, calibrated: bool) -> Result<(), EventError> {
        let sampled = matches!(self.kind, Kind::Poisson | Kind::WithoutReplacement);
        let barker = self.kind == Kind::Barker;
        let repeated = match key {
            "batch" if barker => self.batch.replace(self.whole(key, value)?).is_some(),
            "rows" if barker => self.rows.replace(self.whole(key, value)?).is_some(),
            "rate" if sampled => self.rate.replace(self.share(key, value)?).is_some(),
            "sensitivity" if self.kind == Kind::Gaussian => {
                self.sensitivity.replace(self.number(key, value)?).is_some()
            }
            "clip" if !barker => self.clip.replace(self.number(key, value)?).is_some(),
            "sigma" if !barker => self.sigma.replace(self.number(key, value)?).is_some(),
            "scale" if calibrated && !barker => {
                self.scale.replace(self.number(key, value)?).is_some()
            }
            "count" => self.count.replace(self.whole(key, value)?).is_some(),
            _ => {
                return Err(EventError::UnknownKey {
                    key: key.to_owned(),
                    text: self.text.to_owned(),
                    expected: self.kind.keys(calibrated),
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

    fn share(&self, key: &str, value: &str) -> Result<Real, EventError> {
        match value.parse::<Real>() {
            Ok(share) if share >= Real::ZERO && share <= Real::ONE => Ok(share),
            _ => Err(self.bad_value(key, value, RATE_EXPECTED)),
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
    use super::super::subsampled::Scheme;
    use super::*;

    #[test]
    fn the_command_line_form_is_read() {
        let read = |text| match Event::parse(text, Relation::Substitute).unwrap() {
            Event::Gaussian(gaussian) => gaussian,
            _ => unreachable!(),
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
            ("poisson:clip=1,sigma=1", "`rate` is missing"),
            ("poisson:rate=0.1,sigma=1", "`clip` is missing"),
            ("poisson:rate=1.5,clip=1,sigma=1", "`rate=1.5`"),
            ("poisson:rate=-0.1,clip=1,sigma=1", "`rate=-0.1`"),
            (
                "poisson:rate=0.1,sensitivity=1,sigma=1",
                "unknown key `sensitivity`",
            ),
            ("without-replacement:rate=0.01,clip=1", "`sigma` is missing"),
            ("gaussian:clip=1,scale=2,sigma=1", "unknown key `scale`"),
            ("barker:batch=10,rows=5", "a batch of 10 out of 5 rows"),
            ("barker:rows=5", "`batch` is missing"),
            ("barker:batch=10", "`rows` is missing"),
            ("barker:batch=10,rows=50,sigma=1", "unknown key `sigma`"),
            ("laplace:sigma=1", "unknown kind of event `laplace`"),
        ] {
            let message = Event::parse(text, Relation::Substitute)
                .unwrap_err()
                .to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn sampled_events_are_read() {
        let read = |text, relation| match Event::parse(text, relation).unwrap() {
            Event::Subsampled(event) => event,
            _ => unreachable!(),
        };
        let text = "poisson:rate=0.01,clip=1,sigma=2,count=1000";
        let event = read(text, Relation::AddRemove);
        assert_eq!(event.scheme(), Scheme::PoissonAddRemove);
        assert_eq!(event.rate(), "0.01".parse().unwrap());
        assert_eq!(event.release().count(), 1000);
        let event = read(text, Relation::ZeroOut);
        assert_eq!(event.scheme(), Scheme::PoissonZeroOut);
        let event = read(text, Relation::Substitute);
        assert_eq!(event.scheme(), Scheme::PoissonSubstitute);
        let text = "without-replacement:rate=0,clip=1,sigma=2";
        let event = read(text, Relation::Substitute);
        assert_eq!(event.scheme(), Scheme::WithoutReplacementSubstitute);
        assert_eq!(event.rate(), Real::ZERO);
        for relation in [Relation::AddRemove, Relation::ZeroOut] {
            let refused = EventError::WithoutReplacementRelation(relation);
            assert_eq!(Event::parse(text, relation), Err(refused));
        }
    }

    #[test]
    fn a_barker_test_is_read() {
        let text = "barker:batch=1000,rows=100000,count=7";
        let Event::Barker(event) = Event::parse(text, Relation::Substitute).unwrap() else {
            unreachable!()
        };
        assert_eq!(
            (event.batch(), event.rows(), event.count()),
            (1000, 100_000, 7)
        );
        assert!(
            !Unscaled::parse(text, Relation::Substitute)
                .unwrap()
                .is_unknown()
        );
        for relation in [Relation::AddRemove, Relation::ZeroOut] {
            let refused = EventError::BarkerRelation(relation);
            assert_eq!(Event::parse(text, relation), Err(refused));
        }
    }

    #[test]
    fn an_event_to_calibrate_leaves_sigma_open_or_fixes_it() {
        let read = |text| Unscaled::parse(text, Relation::AddRemove).unwrap();
        let open = read("gaussian:clip=1,count=3");
        assert_eq!((open.sensitivity().to_f64(), open.count()), (1.0, 3));
        let at_two = |unscaled: &Unscaled| unscaled.with_sigma(Real::exact(2.0));
        let parsed = |text| Event::parse(text, Relation::AddRemove);
        assert_eq!(at_two(&open), parsed("gaussian:clip=1,sigma=2,count=3"));
        let scaled = read("poisson:rate=0.5,clip=1,scale=3");
        assert_eq!(at_two(&scaled), parsed("poisson:rate=0.5,clip=1,sigma=6"));
        let fixed = read("gaussian:clip=1,sigma=3");
        assert_eq!(at_two(&fixed), parsed("gaussian:clip=1,sigma=3"));
        assert!(open.is_unknown() && scaled.is_unknown() && !fixed.is_unknown());
        assert!(matches!(
            Unscaled::parse("gaussian:clip=1,sigma=3,scale=2", Relation::AddRemove),
            Err(EventError::SigmaTwice(_))
        ));
    }
}
