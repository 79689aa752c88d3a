mod evaluation;
use evaluation::*;

#[test]
fn shipped_models_report() {
    for path in programs("models") {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let density = shipped(&name);
        let start = std::time::Instant::now();
        let found = density.model().sensitivity();
        println!("{name}: {:?}", start.elapsed());
        match &found.record {
            Ok(b) => println!("   {} {:?} {:?} {:?}", b.norm, b.parts, b.facts, b.rests_on),
            Err(m) => println!("   none: {m}"),
        }
    }
}
