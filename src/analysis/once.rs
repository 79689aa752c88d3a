//! A sum over records that is released once, outside of runs: planned by its own epsilon, charged,
//! released, settled.

use super::error::Error;
use super::prepare::Promise;
use super::run::settle;
use crate::accounting::{
    Accountant, Event, Gaussian, Lattice, Meter, Query, Quote, Request, Session, smallest_scale,
};
use crate::output::RunLedger;
use crate::privacy::{Charge, GradientScale, NotPrivate, PrivateRng, ReleaseError, ScaleError};
use crate::sampler::{PlanError, SampleError};

/// The noise of such a release.
#[derive(Debug)]
pub(crate) struct Once {
    pub scale: GradientScale,
    pub event: Event,
    /// Upper bound on epsilon at the promise's delta.
    pub epsilon: f64,
}

impl Once {
    /// The least noise that keeps the promise, for a sum of so many coordinates. `made`: for a noise
    /// multiplier, the scale and the clip bound for which it is charged.
    ///
    /// # Errors
    ///
    /// A budget that no noise keeps.
    pub fn new(
        what: &str,
        coordinates: usize,
        promise: &Promise,
        made: impl Fn(f64) -> Result<(GradientScale, f64), ScaleError>,
    ) -> Result<Once, Error> {
        let planned = |tau: f64| -> Result<(GradientScale, Event), PlanError> {
            let (scale, clip) = made(tau)?;
            let lattice = Lattice::new(scale.lattice_ratio(), coordinates as u64)?;
            let release = Gaussian::of_clip(what, clip, promise.relation, scale.sigma())?;
            Ok((scale, Event::Gaussian(release.on_lattice(lattice))))
        };
        let query = Query::Epsilon {
            delta: promise.delta,
        };
        let epsilon = |event: &Event| -> Result<f64, PlanError> {
            let events = std::slice::from_ref(event);
            match Accountant::Gaussian.account(events, promise.relation, query) {
                Ok(guarantee) => Ok(guarantee.epsilon),
                Err(error) if error.is_lack_of_noise() => Ok(f64::INFINITY),
                Err(error) => Err(error.into()),
            }
        };
        let target = promise.epsilon.to_f64_down();
        let tau = smallest_scale(1.0, target, 1e-9, |tau| epsilon(&planned(tau)?.1))?;
        let (scale, event) = planned(tau)?;
        Ok(Once {
            epsilon: epsilon(&event)?,
            scale,
            event,
        })
    }

    /// The request to a session.
    fn request<'a>(&'a self, name: &'a str, promise: &'a Promise) -> Request<'a> {
        Request {
            run: name,
            events: std::slice::from_ref(&self.event),
            relation: promise.relation,
            unit: promise.unit_name(),
            part: promise.part.as_ref(),
        }
    }

    /// The cost to a session now; nothing is charged.
    ///
    /// # Errors
    ///
    /// A ledger of another unit or relation.
    pub fn quote(&self, session: &Session, name: &str, promise: &Promise) -> Result<Quote, Error> {
        Ok(session.quote(&self.request(name, promise))?)
    }

    /// Charges the session, where there is one, and releases. `noise_seed` makes noise that protects
    /// nothing, for tests.
    ///
    /// # Errors
    ///
    /// A budget that refuses; rows that are lost.
    pub fn release(
        &self,
        name: &str,
        promise: &Promise,
        session: Option<&Session>,
        noise_seed: Option<u64>,
        released: impl FnOnce(Charge, &mut PrivateRng) -> Result<Vec<f64>, ReleaseError>,
    ) -> Result<(Vec<f64>, Option<RunLedger>), Error> {
        let mut rng = match noise_seed {
            None => PrivateRng::from_os().map_err(SampleError::from)?,
            Some(seed) => PrivateRng::insecure(seed, NotPrivate::acknowledged()),
        };
        let request = self.request(name, promise);
        let reservation = session
            .map(|session| session.reserve(&request))
            .transpose()?;
        let mut ledger = match (
            session.map(Session::path).transpose()?.flatten(),
            &reservation,
        ) {
            (Some(path), Some(reservation)) => Some(RunLedger::new(&path, reservation)),
            _ => None,
        };
        let own;
        let meter = match &reservation {
            Some(reservation) => reservation.meter(),
            None => {
                own = Meter::new(vec![self.event.clone()]);
                &own
            }
        };
        let sums = released(Charge::first(meter), &mut rng);
        if let Some(reservation) = reservation {
            // What it could not take down changes no charge.
            let _ = settle(reservation, sums.is_ok(), ledger.as_mut());
        }
        Ok((sums.map_err(SampleError::from)?, ledger))
    }
}
