//! scratch: model data constants|- reference epsilons reps
use dpm::privacy::*;
use dpm::sampler::*;
use dpm::*;
use std::path::Path;
use std::sync::{Arc, Mutex};
struct Watch(Mutex<Option<Arc<dyn Beginning>>>);
impl Observer for Watch {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}
    fn learnt(&self, l: &Arc<dyn Beginning>) {
        *self.0.lock().unwrap() = Some(l.clone());
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let constants = match a[3].as_str() {
        "-" => Constants::none(),
        f => Constants::from_file(f).unwrap(),
    };
    let model = || Model::from_file(&a[1], &constants).unwrap();
    let rows = load_csv(Path::new(&a[2]), &model().columns, &[], OnBadRows::Skip)
        .map_err(|e| e.to_string())
        .unwrap();
    let n: u64 = std::env::var("N").unwrap().parse().unwrap();
    let vault = Vault::new(Density::new(model()), rows);
    let density = vault.density();
    let t = std::time::Instant::now();
    let form = Form::of(density).unwrap();
    let formed = t.elapsed().as_secs_f64();
    let reference: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&a[4]).unwrap()).unwrap();
    let verbose = a.len() > 7;
    let names: Vec<String> = density.output_names().map(str::to_owned).collect();
    let of = |name: &str| -> Option<(f64, f64)> {
        let p = reference["parameters"].get(name)?;
        Some((p["mean"].as_f64()?, p["sd"].as_f64()?))
    };
    let relation = if std::env::var("AR").is_ok() {
        dpm::accounting::Relation::AddRemove
    } else {
        dpm::accounting::Relation::Substitute
    };
    for eps in a[5].split(',') {
        for rep in 0..a[6].parse::<u64>().unwrap() {
            let t = std::time::Instant::now();
            let request = PlanRequest {
                algorithm: lookup("dp-laplace").unwrap(),
                records: (relation == dpm::accounting::Relation::Substitute).then_some(n),
                relation,
                form: Some(form.clone()),
                chains: 2,
                iterations: Iterations::Fixed(700),
                ..PlanRequest::automatic(
                    Real::from(eps.parse::<f64>().unwrap()),
                    Real::from(1e-6),
                    density.dimension(),
                )
            };
            let plan = match Plan::new(request) {
                Ok(p) => p,
                Err(e) => {
                    println!("{} eps={eps} PLAN {e}", a[1]);
                    return;
                }
            };
            let meter = NotPrivate::acknowledged().meter(plan.events.clone());
            let seed = std::env::var("SEED")
                .ok()
                .and_then(|s| s.parse::<u64>().ok())
                .unwrap_or(0)
                * 100_000
                + rep * 1000
                + (eps.parse::<f64>().unwrap() * 10.0) as u64;
            let settings = PrivateSettings::new(
                200,
                seed,
                PrivateRng::insecure(seed, NotPrivate::acknowledged()),
            );
            let watch = Watch(Mutex::new(None));
            let chains = match sample_privately(&vault, &plan, &meter, &settings, &watch) {
                Ok(c) => c,
                Err(e) => {
                    println!("{} eps={eps} rep={rep} FAIL {e}", a[1]);
                    continue;
                }
            };
            let mut line = Vec::new();
            let (mut worst_z, mut cover, mut cover50, mut count, mut worst_e): (
                f64,
                usize,
                usize,
                usize,
                f64,
            ) = (0.0, 0, 0, 0, 0.0);
            let mut errs = Vec::new();
            let mut logsd = 0.0;
            let mut zz = 0.0;
            for (j, name) in names.iter().enumerate() {
                let Some((mean, sd)) = of(name) else { continue };
                let mut x: Vec<f64> = chains
                    .iter()
                    .flat_map(|c| {
                        c.draws
                            .iter()
                            .filter(|d| d.phase == Phase::Sampling)
                            .map(|d| d.values[j])
                    })
                    .collect();
                let m = x.iter().sum::<f64>() / x.len() as f64;
                let s = (x.iter().map(|v| (v - m).powi(2)).sum::<f64>() / x.len() as f64).sqrt();
                x.sort_by(f64::total_cmp);
                let q = |p: f64| x[(p * (x.len() - 1) as f64) as usize];
                cover += usize::from(q(0.05) <= mean && mean <= q(0.95));
                cover50 += usize::from(q(0.25) <= mean && mean <= q(0.75));
                count += 1;
                let z = (m - mean) / s;
                worst_z = worst_z.max(z.abs());
                zz += z * z;
                let sd = if sd > 0.0 { sd } else { s };
                errs.push((m - mean).abs() / sd);
                worst_e = worst_e.max((m - mean).abs() / sd);
                logsd += (s / sd).ln();
                line.push(format!("{name}:{:.1}/{:.2}", z, s / sd));
            }
            errs.sort_by(f64::total_cmp);
            let report = watch
                .0
                .lock()
                .unwrap()
                .as_ref()
                .map(|l| l.report(&plan))
                .unwrap();
            println!(
                "R {} eps={eps} rep={rep} n={n} z={worst_z:.1} rmsz={:.2} cover={cover}/{count} cover50={cover50} err={:.2}/{worst_e:.1} sdr={:.2} div={} acc={:.2} sec={:.1}+{formed:.1} step={} cut={} sur={} unk={} seen={} csd={:.2} p={} eff={:.2}",
                Path::new(&a[1]).file_stem().unwrap().to_str().unwrap(),
                (zz / count as f64).sqrt(),
                errs[errs.len() / 2],
                (logsd / count as f64).exp(),
                chains
                    .iter()
                    .map(|c| c.draws.iter().filter(|d| d.divergent).count())
                    .sum::<usize>(),
                chains[0].acceptance,
                t.elapsed().as_secs_f64(),
                report["last_step"],
                report["cut"],
                report["surprise"],
                report["unknown"],
                report["seen"],
                report["centre_sd"].as_f64().unwrap_or(-1.0),
                report["certificate"]["p"],
                report["efficiency"].as_f64().unwrap_or(-1.0)
            );
            if verbose {
                println!("   {}\n   {report}", line.join(" "));
            }
        }
    }
}
