//! The settings of particular samplers, in addition to those of every run.
//!
//! Each is declared once, in the list below: its name, its type, its possible values and a
//! sentence for help texts. The flags of the program, their help, the methods of [`Settings`],
//! `config.json`, the settings saved for resuming a run, and the flags that `dpm tune` prints are
//! all made from that list. A sampler names those that it uses in
//! [`Algorithm::settings`](crate::sampler::Algorithm), each with its default: runs, help texts and
//! `config.json` take it from there. Giving another one is an error.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::accounting::{Real, exact_real};
use crate::sampler::contract::Algorithm;
use crate::sampler::contract::error::PlanError;
use crate::sampler::contract::metric::MetricForm;

/// Clip bounds on gradients and on log-ratios per unit of distance: generous for
/// a regression with a handful of covariates of size one.
pub const DEFAULT_CLIP: f64 = 3.0;

/// A bound on what one record adds to a gradient, or to a log-ratio per unit of distance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Clip {
    /// The bound that no record exceeds, by the model and its declared bounds, so that nothing is
    /// ever clipped.
    Derived,
    /// This number.
    At(f64),
}

impl From<f64> for Clip {
    fn from(bound: f64) -> Clip {
        Clip::At(bound)
    }
}

/// The values that a setting may have.
struct Range<T: 'static> {
    holds: fn(&T) -> bool,
    /// In words that follow "must be".
    expected: &'static str,
}

const fn range<T>(holds: fn(&T) -> bool, expected: &'static str) -> Range<T> {
    Range { holds, expected }
}

const ANY: Range<bool> = range(|_| true, "");
const ANY_FORM: Range<MetricForm> = range(|_| true, "");
const AT_LEAST_ONE: Range<u64> = range(|n| *n >= 1, "at least 1");
const DEPTH: Range<u64> = range(|n| (1..=20).contains(n), "between 1 and 20");
const POSITIVE: Range<f64> = range(|x| *x > 0.0 && x.is_finite(), "a positive number");
const NOT_NEGATIVE: Range<f64> = range(|x| *x >= 0.0 && x.is_finite(), "0 or a positive number");
const SHARE: Range<f64> = range(
    |x| *x > 0.0 && *x < 1.0,
    "a share of the budget, above 0 and below 1",
);
const PROBABILITY: Range<f64> = range(|x| *x > 0.0 && *x < 1.0, "a number between 0 and 1");
const POWER: Range<f64> = range(
    |x| (0.0..=1.0).contains(x),
    "a power of 1/iteration, from 0 (constant steps) to 1",
);
const RATE: Range<Real> = range(
    |x| *x > Real::ZERO && *x <= Real::ONE,
    "a probability, above 0 and at most 1",
);
const CLIP: Range<Clip> = range(
    |clip| match clip {
        Clip::Derived => true,
        Clip::At(bound) => *bound > 0.0 && bound.is_finite(),
    },
    "a positive number, or derived",
);

/// A type of settings.
trait SettingValue: Sized + Clone {
    /// The possible values, where there are few.
    const CHOICES: &'static [&'static str] = &[];
    /// Whether the setting is turned on by its name alone, without a value.
    const IS_SWITCH: bool = false;

    /// Reads a value as typed.
    fn read(text: &str) -> Result<Self, String>;

    /// The value as typed.
    fn text(&self) -> String;

    /// For `config.json`.
    fn json(&self) -> Value;

    /// The value in a form that is restored without loss.
    fn saved(&self) -> Value {
        self.json()
    }

    fn restored(saved: &Value) -> Option<Self>;
}

impl SettingValue for u64 {
    fn read(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| "expected a whole number".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> Value {
        json!(self)
    }

    fn restored(saved: &Value) -> Option<u64> {
        saved.as_u64()
    }
}

impl SettingValue for f64 {
    fn read(text: &str) -> Result<f64, String> {
        text.parse().map_err(|_| "expected a number".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> Value {
        json!(self)
    }

    fn restored(saved: &Value) -> Option<f64> {
        saved.as_f64()
    }
}

impl SettingValue for bool {
    const IS_SWITCH: bool = true;

    fn read(text: &str) -> Result<bool, String> {
        text.parse().map_err(|_| "expected true or false".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> Value {
        json!(self)
    }

    fn restored(saved: &Value) -> Option<bool> {
        saved.as_bool()
    }
}

impl SettingValue for Real {
    fn read(text: &str) -> Result<Real, String> {
        text.parse().map_err(|_| "expected a number".into())
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> Value {
        json!(self.to_f64())
    }

    fn saved(&self) -> Value {
        json!(self.parts())
    }

    fn restored(saved: &Value) -> Option<Real> {
        exact_real::deserialize(saved).ok()
    }
}

impl SettingValue for Clip {
    fn read(text: &str) -> Result<Clip, String> {
        match text {
            "derived" => Ok(Clip::Derived),
            number => number.parse().map(Clip::At).map_err(|_| {
                "expected a number, or `derived`: the bound that `dpm check` shows".into()
            }),
        }
    }

    fn text(&self) -> String {
        match self {
            Clip::Derived => "derived".to_owned(),
            Clip::At(bound) => bound.to_string(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Clip::Derived => json!("derived"),
            Clip::At(bound) => json!(bound),
        }
    }

    fn restored(saved: &Value) -> Option<Clip> {
        match saved.as_f64() {
            Some(bound) => Some(Clip::At(bound)),
            None => (saved == "derived").then_some(Clip::Derived),
        }
    }
}

impl SettingValue for MetricForm {
    const CHOICES: &'static [&'static str] = &["unit", "diag", "dense"];

    fn read(text: &str) -> Result<MetricForm, String> {
        let forms = [MetricForm::Unit, MetricForm::Diagonal, MetricForm::Dense];
        let found = forms.into_iter().find(|form| form.name() == text);
        found.ok_or_else(|| format!("expected one of {}", Self::CHOICES.join(", ")))
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn json(&self) -> Value {
        json!(self.name())
    }

    fn restored(saved: &Value) -> Option<MetricForm> {
        MetricForm::read(saved.as_str()?).ok()
    }
}

macro_rules! settings {
    ($(
        $group:literal {
            $(
                $(#[doc = $doc:literal])+
                $name:ident: $type:ty [$argument:ty] = $range:ident, $placeholder:literal;
            )+
        }
    )+) => {
        /// Settings of particular samplers. Those that are not given are found by the sampler,
        /// or have the default that `dpm sample --help` names.
        ///
        /// ```
        /// let settings = dpm::Settings::new().leapfrog_steps(10).clip_gradient(1.5);
        /// assert_eq!(settings.leapfrog_steps, Some(10));
        /// ```
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Settings {
            $($( $(#[doc = $doc])+ pub $name: Option<$type>, )+)+
        }

        impl Settings {
            $($(
                $(#[doc = $doc])+
                #[must_use]
                pub fn $name(mut self, value: $argument) -> Settings {
                    self.$name = Some(value.into());
                    self
                }
            )+)+
        }

        /// The name of a setting.
        #[expect(non_camel_case_types, reason = "each is spelt as the field of `Settings`")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting {
            $($( $name, )+)+
        }

        impl Setting {
            /// All settings, in the order of help texts.
            pub const ALL: &[Setting] = &[$($( Setting::$name, )+)+];

            /// The name, as in code and in `config.json`.
            pub fn name(self) -> &'static str {
                match self {
                    $($( Setting::$name => stringify!($name), )+)+
                }
            }

            /// The description in help texts.
            pub fn sentence(self) -> &'static str {
                match self {
                    $($( Setting::$name => concat!($($doc),+).trim_ascii(), )+)+
                }
            }

            /// The heading under which help texts list it.
            pub fn group(self) -> &'static str {
                match self {
                    $($( Setting::$name => $group, )+)+
                }
            }

            /// The placeholder for a value in help texts.
            pub fn placeholder(self) -> &'static str {
                match self {
                    $($( Setting::$name => $placeholder, )+)+
                }
            }

            /// The possible values, where there are few.
            pub fn choices(self) -> &'static [&'static str] {
                match self {
                    $($( Setting::$name => <$type as SettingValue>::CHOICES, )+)+
                }
            }

            /// Whether it is given without a value.
            pub fn is_switch(self) -> bool {
                match self {
                    $($( Setting::$name => <$type as SettingValue>::IS_SWITCH, )+)+
                }
            }
        }

        impl Settings {
            /// Whether a setting is given.
            pub fn has(&self, setting: Setting) -> bool {
                match setting {
                    $($( Setting::$name => self.$name.is_some(), )+)+
                }
            }

            /// Gives a setting a value as typed.
            ///
            /// # Errors
            ///
            /// `text` is not a value of this setting; a sentence that says what was expected.
            pub fn read(&mut self, setting: Setting, text: &str) -> Result<(), String> {
                match setting {
                    $($( Setting::$name => self.$name = Some(SettingValue::read(text)?), )+)+
                }
                Ok(())
            }

            /// The value of a setting as typed; `None` where it is not given.
            pub fn text(&self, setting: Setting) -> Option<String> {
                match setting {
                    $($( Setting::$name => self.$name.as_ref().map(SettingValue::text), )+)+
                }
            }

            /// The value of a setting for `config.json`; null where it is not given.
            pub fn json(&self, setting: Setting) -> Value {
                match setting {
                    $($( Setting::$name => {
                        self.$name.as_ref().map_or(Value::Null, SettingValue::json)
                    } )+)+
                }
            }

            fn saved(&self, setting: Setting) -> Option<Value> {
                match setting {
                    $($( Setting::$name => self.$name.as_ref().map(SettingValue::saved), )+)+
                }
            }

            fn restore(&mut self, setting: Setting, saved: &Value) -> bool {
                match setting {
                    $($( Setting::$name => {
                        self.$name = SettingValue::restored(saved);
                        self.$name.is_some()
                    } )+)+
                }
            }

            /// The values that a setting may have, if it has another one.
            fn fault(&self, setting: Setting) -> Option<&'static str> {
                match setting {
                    $($( Setting::$name => {
                        let value = self.$name.as_ref()?;
                        (!($range.holds)(value)).then_some($range.expected)
                    } )+)+
                }
            }
        }
    };
}

settings! {
    "Steps" {
        /// Leapfrog steps per iteration
        leapfrog_steps: u64 [u64] = AT_LEAST_ONE, "L";
        /// Largest leapfrog step, or standard deviation of a proposal, unconstrained scale; fixed where private, the first one otherwise
        step_size: f64 [f64] = POSITIVE, "ETA";
        /// Propose a change of one coordinate at a time
        one_component: bool [bool] = ANY, "";
        /// Propose one coordinate at a time, in the direction that was accepted last
        guided_walk: bool [bool] = ANY, "";
        /// Draw the first gradient of every trajectory anew, as the paper does
        fresh_gradients: bool [bool] = ANY, "";
        /// Leapfrog steps of one size, without jitter
        fixed_steps: bool [bool] = ANY, "";
        /// Form in which warm-up estimates the posterior's scales
        metric: MetricForm [MetricForm] = ANY_FORM, "FORM";
        /// Largest number of doublings of a nuts trajectory
        max_depth: u64 [u64] = DEPTH, "N";
        /// Mean acceptance that warm-up aims at
        target_acceptance: f64 [f64] = PROBABILITY, "P";
    }
    "Clipping and noise" {
        /// Bound on the l2 norm of one record's gradient (of one unit's, summed over its rows, where rows share units); `derived`: the bound that no record exceeds
        clip_gradient: Clip [impl Into<Clip>] = CLIP, "B|derived";
        /// Bound on one record's (or unit's) log-likelihood ratio, per unit of distance
        clip_log_ratio: Clip [impl Into<Clip>] = CLIP, "B|derived";
        /// Share of the budget that goes to gradients, the rest to log-ratios
        noise_split: f64 [f64] = SHARE, "SHARE";
        /// Noise multiplier of gradients, in units of their sensitivity
        tau_gradient: f64 [f64] = POSITIVE, "TAU";
        /// Noise multiplier of log-ratios, in units of their sensitivity
        tau_log_ratio: f64 [f64] = POSITIVE, "TAU";
    }
    "Batches" {
        /// Probability of a record (or unit) to be in a batch
        batch_rate: Real [impl Into<Real>] = RATE, "R";
        /// Records (or units) in a batch of fixed size, drawn without replacement
        batch_size: u64 [u64] = AT_LEAST_ONE, "B";
        /// Steps fall like 1 / iteration^P, in blocks; 0 for constant steps
        step_decay: f64 [f64] = POWER, "P";
        /// Friction per unit of time, A of sgnht and F of sghmc and dp-amagold
        friction: f64 [f64] = POSITIVE, "F";
        /// B of sghmc: the variance of the batches' own noise per unit of time, a public guess
        noise_estimate: f64 [f64] = NOT_NEGATIVE, "B";
    }
    "dp-langevin" {
        /// Share of the budget for what is learnt before the chains begin
        start_share: f64 [f64] = SHARE, "SHARE";
        /// Gradients from one draw of dp-langevin to the next
        gradients_per_draw: u64 [u64] = AT_LEAST_ONE, "N";
    }
}

/// A setting of one sampler.
#[derive(Debug, Clone, Copy)]
pub struct OwnSetting {
    pub setting: Setting,
    pub default: Unset,
}

/// The value of a setting that is not given.
#[derive(Debug, Clone, Copy)]
pub enum Unset {
    Number(f64),
    Form(MetricForm),
    /// A switch is off.
    Off,
    /// This number, in words, in which `{}` stands for it.
    Told(&'static str, f64),
    /// No single value; where it comes from, in words.
    Found(&'static str),
}

impl Unset {
    pub(crate) const WARM_UP: Unset = Unset::Found("adapted in warm-up");
    pub(crate) const BUDGET: Unset = Unset::Found("what the budget allows");
    pub(crate) const ALL_RECORDS: Unset = Unset::Found("all records");
    pub(crate) const DYNAMICS: Unset = Unset::Found("what the dynamics and the budget need");
    pub(crate) const FRICTION: Unset = Unset::Found("0.1 / first step");
    pub(crate) const STEP_OF_CLIP: Unset =
        Unset::Found("from the number of records and the clip bound");
    pub(crate) const DECREASING: Unset = Unset::Told("1/3", 1.0 / 3.0);
    pub(crate) const DENSE: Unset = Unset::Found("dense, or diag beyond 50 parameters,");
    /// `Analysis` derives a bound where it can.
    pub(crate) const CLIP: Unset =
        Unset::Told("derived where that is at most {}, else {}", DEFAULT_CLIP);

    /// For help texts.
    pub(crate) fn words(self) -> Option<String> {
        match self {
            Unset::Number(number) => Some(number.to_string()),
            Unset::Form(form) => Some(form.name().to_owned()),
            Unset::Off => None,
            Unset::Told(words, number) => Some(words.replace("{}", &number.to_string())),
            Unset::Found(words) => Some(words.to_owned()),
        }
    }

    /// As typed, if it is a value.
    fn text(self) -> Option<String> {
        match self {
            Unset::Number(number) | Unset::Told(_, number) => Some(number.to_string()),
            Unset::Form(form) => Some(form.name().to_owned()),
            Unset::Off | Unset::Found(_) => None,
        }
    }
}

impl Setting {
    /// The setting with a sampler's default.
    pub(crate) const fn or(self, default: Unset) -> OwnSetting {
        OwnSetting {
            setting: self,
            default,
        }
    }
}

impl Settings {
    /// No settings are given.
    pub fn new() -> Settings {
        Settings::default()
    }

    /// The settings that are given.
    pub fn given(&self) -> impl Iterator<Item = Setting> + '_ {
        Setting::ALL.iter().copied().filter(|s| self.has(*s))
    }

    /// The settings that a sampler uses.
    pub(crate) fn of(mut self, algorithm: &Algorithm) -> Settings {
        for setting in Setting::ALL {
            if !algorithm.has(*setting) {
                self.restore(*setting, &Value::Null);
            }
        }
        self
    }

    /// With a sampler's defaults for those that are not given. A step size that is given leaves
    /// nothing to adapt.
    pub(crate) fn or_defaults(mut self, algorithm: &Algorithm) -> Settings {
        let fixes_step = algorithm.fixes_steps() && self.step_size.is_some();
        for OwnSetting { setting, default } in algorithm.settings {
            if let (false, Some(text)) = (self.has(*setting), default.text()) {
                let read = self.read(*setting, &text);
                debug_assert!(read.is_ok(), "{setting:?} has the default {text}");
            }
        }
        self.target_acceptance = self.target_acceptance.filter(|_| !fixes_step);
        self
    }

    /// Refuses a setting that the sampler does not use, and a value out of range.
    pub(crate) fn check(&self, algorithm: &Algorithm) -> Result<(), PlanError> {
        let foreign = |setting: &Setting| !algorithm.has(*setting);
        if let Some(setting) = self.given().find(foreign) {
            let names: Vec<String> = (algorithm.settings.iter())
                .map(|own| format!("`{}`", own.setting.name()))
                .collect();
            let own = if names.is_empty() {
                String::new()
            } else {
                format!(". It has {}", names.join(", "))
            };
            return Err(PlanError::Settings(format!(
                "`{}` means nothing to `{}`: leave it out{own}",
                setting.name(),
                algorithm.name
            )));
        }
        if algorithm.fixes_steps() && self.target_acceptance.is_some() && self.step_size.is_some() {
            return Err(PlanError::Settings(
                "`target_acceptance` adapts the step size, which `step_size` fixes: leave one of them out".into(),
            ));
        }
        if self.batch_rate.is_some() && self.batch_size.is_some() {
            return Err(PlanError::Settings(
                "batches have either a rate (`batch_rate`) or a size (`batch_size`): leave one of them out".into(),
            ));
        }
        if self.noise_split.is_some()
            && (self.tau_gradient.is_some() || self.tau_log_ratio.is_some())
        {
            return Err(PlanError::Settings(
                "`noise_split` divides the budget, and the noise follows from it; `tau_gradient` and `tau_log_ratio` give the noise: leave one or the other out".into(),
            ));
        }
        self.check_values()
    }

    /// Refuses a value out of range.
    pub(crate) fn check_values(&self) -> Result<(), PlanError> {
        match self.given().find_map(|s| Some((s, self.fault(s)?))) {
            Some((setting, expected)) => Err(PlanError::Settings(format!(
                "`{}` is {}, but must be {expected}",
                setting.name(),
                self.text(setting).unwrap_or_default()
            ))),
            None => Ok(()),
        }
    }
}

/// Without loss, unlike [`Settings::json`].
impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let saved = self.given().filter_map(|setting| {
            let value = self.saved(setting)?;
            Some((setting.name().to_owned(), value))
        });
        saved.collect::<Map<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Settings, D::Error> {
        let mut settings = Settings::new();
        for (name, value) in Map::<String, Value>::deserialize(deserializer)? {
            let known = Setting::ALL.iter().find(|setting| setting.name() == name);
            if !known.is_some_and(|setting| settings.restore(*setting, &value)) {
                let message = format!("`{name}` is not a setting, or {value} is not a value of it");
                return Err(serde::de::Error::custom(message));
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{ALGORITHMS, lookup};

    /// A value of each setting that is unlike any default, as it is typed.
    fn typed(setting: Setting) -> &'static str {
        match setting {
            Setting::metric => "dense",
            Setting::clip_gradient => "derived",
            Setting::clip_log_ratio => "0.125",
            // Between two doubles.
            Setting::batch_rate => "0.012345678901234567890123",
            s if s.is_switch() => "true",
            s if s.placeholder() == "N" || s.placeholder() == "L" || s.name() == "batch_size" => {
                "7"
            }
            _ => "0.375",
        }
    }

    fn all_given() -> Settings {
        let mut settings = Settings::new();
        for setting in Setting::ALL {
            settings.read(*setting, typed(*setting)).unwrap();
        }
        settings
    }

    // If it failed: a run would be resumed with other settings than it began with.
    #[test]
    fn what_is_saved_is_restored_without_loss() {
        let all = all_given();
        assert!(Setting::ALL.iter().all(|setting| all.has(*setting)));
        for settings in [Settings::new(), all] {
            let text = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        }
        for wrong in [
            "{\"step\":1}",
            "{\"step_size\":\"x\"}",
            "{\"batch_rate\":0.5}",
        ] {
            assert!(serde_json::from_str::<Settings>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_typed_as_they_are_shown() {
        let all = all_given();
        for setting in Setting::ALL.iter().copied() {
            let mut again = all.clone();
            again.read(setting, &all.text(setting).unwrap()).unwrap();
            if setting != Setting::batch_rate {
                assert_eq!(again, all, "{setting:?}");
            }
            let nonsense = Settings::new().read(setting, "nonsense");
            assert!(
                nonsense.is_err_and(|e| e.starts_with("expected")),
                "{setting:?}"
            );
        }
    }

    // If it failed: a value that means nothing would be planned with, or one that does refused.
    #[test]
    fn values_out_of_range_and_settings_of_others_are_refused() {
        let hmc = lookup("dp-hmc").unwrap();
        let said = |settings: Settings| settings.check(hmc).unwrap_err().to_string();
        assert!(said(Settings::new().leapfrog_steps(0)).contains("`leapfrog_steps` is 0"));
        assert!(said(Settings::new().step_size(f64::NAN)).contains("a positive number"));
        assert!(said(Settings::new().clip_gradient(-1.0)).contains("a positive number"));
        assert!(said(Settings::new().target_acceptance(1.0)).contains("between 0 and 1"));
        let foreign = said(Settings::new().batch_size(7));
        assert!(
            foreign.contains("`batch_size` means nothing to `dp-hmc`"),
            "{foreign}"
        );
        assert!(foreign.contains("It has `step_size`, "), "{foreign}");
        for algorithm in ALGORITHMS {
            let own = Settings {
                target_acceptance: None,
                noise_split: None,
                batch_size: None,
                ..all_given()
            };
            own.of(algorithm).check(algorithm).unwrap();
        }
    }

    // If it failed: a run would have another value than its help says, or none.
    #[test]
    fn defaults_are_values_of_their_settings() {
        for algorithm in ALGORITHMS.iter().chain([&crate::sampler::OWN]) {
            let settled = Settings::new().or_defaults(algorithm);
            settled.check(algorithm).unwrap();
            for OwnSetting { setting, default } in algorithm.settings {
                assert_eq!(settled.has(*setting), default.text().is_some());
                let is_off = matches!(default, Unset::Off);
                assert_eq!(setting.is_switch(), is_off, "{setting:?}");
            }
        }
        let target = |name: &str, settings: Settings| {
            let settled = settings.or_defaults(lookup(name).unwrap());
            settled.target_acceptance
        };
        assert_eq!(target("dp-laplace", Settings::new()), Some(0.9));
        assert_eq!(target("dp-hmc", Settings::new()), Some(0.5));
        assert_eq!(target("dp-hmc", Settings::new().step_size(0.1)), None);
        assert_eq!(target("nuts", Settings::new().step_size(0.1)), Some(0.8));
    }
}
