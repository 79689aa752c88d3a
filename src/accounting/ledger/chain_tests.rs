use super::super::super::accountant::Accountant;
use super::super::super::budget::Budget;
use super::super::super::event::Event;
use super::super::super::relation::Relation;
use super::super::entry::Outcome;
use super::super::session::opening;
use super::super::stored_event::StoredEvent;
use super::super::terms::Terms;
use super::*;

fn first_line() -> Vec<u8> {
    let budget = Budget::new(1.0, 1e-6).unwrap();
    let terms = Terms::new(budget, Relation::Substitute, "record", Accountant::Gaussian).unwrap();
    let mut line = Entry::Ledger(opening(&terms, "0123".to_owned()))
        .line()
        .unwrap();
    line.push(b'\n');
    line
}

fn events() -> Vec<StoredEvent> {
    let event = Event::parse("gaussian:clip=1,sigma=1e5,count=7", Relation::Substitute).unwrap();
    vec![StoredEvent::of(&event, Relation::Substitute)]
}

/// A ledger in memory, written as the program would.
#[derive(Clone)]
struct Text {
    bytes: Vec<u8>,
    entries: u64,
    last: EntryHash,
}

impl Text {
    fn new() -> Text {
        let bytes = first_line();
        Text {
            last: EntryHash::of(&bytes[..bytes.len() - 1]),
            bytes,
            entries: 1,
        }
    }

    fn add(&mut self, make: impl FnOnce(u64, EntryHash) -> Entry) {
        let line = make(self.entries + 1, self.last).line().unwrap();
        self.last = EntryHash::of(&line);
        self.entries += 1;
        self.bytes.extend(line);
        self.bytes.push(b'\n');
    }

    fn reserve(&mut self) {
        self.add(|entry, previous| Entry::Reserved {
            entry,
            previous,
            date: "2026-01-01".to_owned(),
            run: "a run".to_owned(),
            events: events(),
            part: None,
            token: None,
        });
    }

    fn reserve_resumable(&mut self, token: &str) {
        self.add(|entry, previous| Entry::Reserved {
            entry,
            previous,
            date: "2026-01-01".to_owned(),
            run: "a long run".to_owned(),
            events: events(),
            part: None,
            token: Some(token.to_owned()),
        });
    }

    fn resume(&mut self, of: u64, after: &str, token: &str) {
        self.add(|entry, previous| Entry::Resumed {
            entry,
            previous,
            date: "2026-01-02".to_owned(),
            of,
            after: after.to_owned(),
            token: token.to_owned(),
        });
    }

    fn interrupt(&mut self, of: u64, after: &str, token: &str, released: u64) {
        self.add(|entry, previous| Entry::Interrupted {
            entry,
            previous,
            of,
            after: after.to_owned(),
            token: token.to_owned(),
            released: vec![released],
        });
    }

    fn settle(&mut self, of: u64, outcome: Outcome, released: u64) {
        self.add(|entry, previous| Entry::Settled {
            entry,
            previous,
            of,
            outcome,
            released: vec![released],
        });
    }

    fn head(&self) -> Head {
        Head {
            ledger: "0123".to_owned(),
            entries: self.entries,
            bytes: self.bytes.len() as u64,
            hash: self.last,
        }
    }

    /// Marks the torn bytes at the end, as the next append would.
    fn repair(&mut self) {
        let chain = read(&self.bytes, None).unwrap();
        let Tail::Torn { length, hash } = chain.tail else {
            panic!("nothing is torn");
        };
        self.bytes.push(b'\n');
        self.add(|entry, previous| Entry::Recovered {
            entry,
            previous,
            offset: chain.end,
            length,
            hash,
        });
    }
}

fn read(bytes: &[u8], head: Option<&Head>) -> Result<Chain, String> {
    Chain::read(bytes, head, true).map_err(|error| error.to_string())
}

fn three_runs() -> Text {
    let mut text = Text::new();
    text.reserve();
    text.settle(2, Outcome::Completed, 7);
    text.reserve();
    text.settle(4, Outcome::NothingReleased, 0);
    text.reserve();
    text
}

/// A run that was cut short twice, and another run.
fn long_runs() -> Text {
    let mut text = Text::new();
    text.reserve_resumable("a");
    text.resume(2, "a", "b");
    text.reserve_resumable("c");
    text.resume(2, "b", "d");
    text.settle(2, Outcome::Completed, 7);
    text
}

// Wrong here: a copy of an earlier state is resumed after an interruption, or an interruption that
// is not the run's own is believed.
#[test]
fn an_interruption_changes_the_token_and_keeps_the_charge() {
    let mut text = Text::new();
    text.reserve_resumable("a");
    text.interrupt(2, "a", "b", 3);
    let chain = read(&text.bytes, Some(&text.head())).unwrap();
    let run = &chain.books.history()[0];
    assert_eq!(
        (run.outcome, run.released.as_deref()),
        (None, Some(&[3][..]))
    );
    assert_eq!(
        run.entries.iter().map(|at| at.entry).collect::<Vec<_>>(),
        [2, 3]
    );
    assert!(chain.books.charged("a").is_none() && chain.books.went_on(2));
    assert_eq!(chain.books.tally.interrupted, 1);
    type Change = fn(&mut Text);
    let cases: [(Change, &str); 4] = [
        (|t| t.resume(2, "a", "c"), "without the run's last token"),
        (
            |t| t.interrupt(2, "a", "c", 3),
            "without the run's last token",
        ),
        (|t| t.interrupt(2, "b", "b", 3), "was used before"),
        (
            |t| t.interrupt(2, "b", "c", 8),
            "more releases than entry 2 reserved",
        ),
    ];
    for (change, word) in cases {
        let mut text = text.clone();
        change(&mut text);
        let error = read(&text.bytes, None).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

// Wrong here: a copy that was resumed and stopped at once lifts the charge of releases that the
// original made. Earlier programs wrote such lines.
#[test]
fn a_run_that_was_gone_on_with_is_never_lifted() {
    let spent = |change: fn(&mut Text)| {
        let mut text = Text::new();
        text.reserve_resumable("a");
        change(&mut text);
        text.settle(2, Outcome::NothingReleased, 0);
        read(&text.bytes, None).unwrap().books.balance.spent()
    };
    assert_eq!(spent(|_| {}), 0.0);
    assert!(spent(|t| t.resume(2, "a", "b")) > 0.0);
    assert!(spent(|t| t.interrupt(2, "a", "b", 0)) > 0.0);
}

#[test]
fn entries_add_up() {
    let text = three_runs();
    let chain = read(&text.bytes, Some(&text.head())).unwrap();
    let tally = chain.books.tally;
    assert_eq!(
        (
            tally.runs,
            tally.completed,
            tally.nothing_released,
            tally.unsettled()
        ),
        (3, 1, 1, 1)
    );
    assert_eq!(
        (chain.entries, chain.last, chain.tail),
        (6, text.last, Tail::Whole)
    );
    let history = chain.books.history();
    assert_eq!(history[0].released, Some(vec![7]));
    assert_eq!(history[2].outcome, None);
    let mut two = Text::new();
    two.reserve();
    two.reserve();
    let two = read(&two.bytes, None).unwrap();
    let spent = |chain: &Chain| chain.books.balance.spent();
    assert!((spent(&chain) / spent(&two) - 1.0).abs() < 1e-15);
}

// Wrong here: a resumed run is charged again, or a copy of it is resumed as well.
#[test]
fn a_run_goes_on_on_its_charge_and_by_its_last_token() {
    let text = long_runs();
    let chain = read(&text.bytes, Some(&text.head())).unwrap();
    let books = &chain.books;
    assert_eq!((books.tally.runs, books.tally.resumed), (2, 2));
    assert_eq!((books.tally.completed, books.tally.unsettled()), (1, 1));
    assert_eq!(
        (books.history()[0].resumed, books.history()[1].resumed),
        (2, 0)
    );
    let mut two = Text::new();
    two.reserve();
    two.reserve();
    let two = read(&two.bytes, None).unwrap();
    assert_eq!(books.balance.spent(), two.books.balance.spent());
    assert_eq!(books.charged("c").unwrap().at.entry, 4);
    for token in ["a", "b", "d", ""] {
        assert!(books.charged(token).is_none(), "{token}");
    }
    // A process that was killed before it noted its charge knows the first token alone, and so does
    // one that resumed the run and was killed as early.
    let mut twice = Text::new();
    twice.reserve_resumable("a");
    twice.resume(2, "a", "b");
    let twice = read(&twice.bytes, None).unwrap();
    assert_eq!(twice.books.reserved("a").unwrap().entry, 2);
    assert!(twice.books.reserved("b").is_none());
    assert_eq!(books.reserved("c").unwrap().entry, 4);
    assert!(books.reserved("a").is_none(), "it is settled");
    type Change = fn(&mut Text);
    let cases: [(Change, &str); 7] = [
        (|t| t.resume(4, "a", "e"), "without the run's last token"),
        (|t| t.resume(4, "d", "e"), "without the run's last token"),
        (|t| t.resume(4, "c", "c"), "was used before"),
        (|t| t.resume(2, "d", "e"), "not a run under way"),
        (|t| t.resume(3, "d", "e"), "not a run under way"),
        (|t| t.reserve_resumable("c"), "was used before"),
        (
            |t| {
                t.reserve();
                t.resume(7, "", "e");
            },
            "without the run's last token",
        ),
    ];
    for (change, word) in cases {
        let mut text = long_runs();
        change(&mut text);
        let error = read(&text.bytes, None).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    let mut text = long_runs();
    text.resume(4, "c", "e");
    let chain = read(&text.bytes, Some(&text.head())).unwrap();
    assert_eq!(chain.books.charged("e").unwrap().at.entry, 4);
}

// The bytes that the previous version wrote.
#[test]
fn a_ledger_from_before_runs_could_go_on_is_read() {
    let mut text = Text::new();
    text.reserve();
    let line = String::from_utf8(text.bytes.clone()).unwrap();
    assert!(!line.contains("token"), "{line}");
    assert!(line.ends_with("\"count\":7}}]}}\n"), "{line}");
    assert_eq!(read(&text.bytes, None).unwrap().books.tally.runs, 1);
}

// Every bit of the file matters: the ledger no longer holds if any of them is flipped.
#[test]
fn an_edit_anywhere_shows() {
    for text in [three_runs(), long_runs()] {
        let head = text.head();
        for at in 0..text.bytes.len() {
            let mut edited = text.bytes.clone();
            edited[at] ^= 1;
            let error = read(&edited, Some(&head)).err();
            assert!(error.is_some(), "byte {at}");
        }
    }
}

// Without the head, a file cut at a line's end looks whole, and a cut line looks torn.
#[test]
fn a_cut_anywhere_shows_by_the_head() {
    let text = long_runs();
    let head = text.head();
    for length in 0..text.bytes.len() {
        let cut = &text.bytes[..length];
        assert!(read(cut, Some(&head)).is_err(), "{length} bytes");
    }
    let text = three_runs();
    let head = text.head();
    for length in 0..text.bytes.len() {
        let cut = &text.bytes[..length];
        assert!(read(cut, Some(&head)).is_err(), "{length} bytes");
    }
    let last_line = text.bytes[..text.bytes.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap();
    let error = read(&text.bytes[..last_line + 1], Some(&head)).unwrap_err();
    assert!(
        error.contains("ends after entry 5, and 6 were written"),
        "{error}"
    );
    assert_eq!(
        read(&text.bytes[..last_line + 1], None).unwrap().tail,
        Tail::Whole
    );
    assert!(matches!(
        read(&text.bytes[..last_line + 9], None).unwrap().tail,
        Tail::Torn { .. }
    ));
}

#[test]
fn lines_that_are_moved_removed_or_doubled_show() {
    for text in [long_runs(), three_runs()] {
        let head = text.head();
        let lines: Vec<&[u8]> = text.bytes.split_inclusive(|&byte| byte == b'\n').collect();
        let without = |i: usize| [&lines[..i], &lines[i + 1..]].concat().concat();
        for i in 0..lines.len() {
            assert!(read(&without(i), Some(&head)).is_err(), "without {i}");
            let doubled = [&lines[..=i], &lines[i..]].concat().concat();
            assert!(read(&doubled, Some(&head)).is_err(), "{i} twice");
            for j in 0..i {
                let mut moved = lines.clone();
                moved.swap(i, j);
                assert!(read(&moved.concat(), Some(&head)).is_err(), "{i} and {j}");
            }
        }
    }
    // In the middle the chain alone shows it.
    let text = three_runs();
    let lines: Vec<&[u8]> = text.bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let error = read(&[&lines[..2], &lines[3..]].concat().concat(), None).unwrap_err();
    assert!(error.contains("entry 3"), "{error}");
    assert!(error.contains("removed, added or moved"), "{error}");
}

// A crash between the ledger and its head, or in the middle of a line: what was
// acknowledged counts, what was written whole counts, and the rest says that it is torn.
#[test]
fn what_a_crash_leaves_is_told_from_damage() {
    let before = three_runs();
    let head = before.head();
    let mut after = three_runs();
    after.settle(6, Outcome::Stopped, 3);
    let stopped = |chain: &Chain| chain.books.tally.stopped;
    for length in before.bytes.len()..=after.bytes.len() {
        let chain = read(&after.bytes[..length], Some(&head)).unwrap();
        let written = length - before.bytes.len();
        let whole = after.bytes.len() - before.bytes.len();
        match written {
            0 => assert_eq!((chain.tail, stopped(&chain)), (Tail::Whole, 0)),
            _ if written == whole => assert_eq!((chain.tail, stopped(&chain)), (Tail::Whole, 1)),
            _ if written + 1 == whole => {
                assert_eq!((chain.tail, stopped(&chain)), (Tail::NoLineFeed, 1));
            }
            _ => {
                assert!(matches!(chain.tail, Tail::Torn { .. }), "{written}");
                assert_eq!((chain.entries, stopped(&chain)), (6, 0));
            }
        }
    }
}

// And so is what a crash leaves of a repair, and of the repair of a repair.
#[test]
fn torn_lines_are_marked_and_stay() {
    let mut text = three_runs();
    let head = text.head();
    text.bytes.extend(b"{\"settled\":{\"entry\":7,\"prev");
    let torn = text.bytes.clone();
    text.repair();
    let repaired = text.bytes.clone();
    for length in torn.len()..repaired.len() - 1 {
        let mut cut = Text {
            bytes: repaired[..length].to_vec(),
            ..three_runs()
        };
        let chain = read(&cut.bytes, Some(&head)).unwrap();
        assert!(matches!(chain.tail, Tail::Torn { .. }), "{length}");
        cut.repair();
        cut.settle(6, Outcome::Completed, 7);
        let chain = read(&cut.bytes, Some(&cut.head())).unwrap();
        let tally = chain.books.tally;
        assert_eq!((tally.recovered, tally.completed, chain.entries), (1, 2, 8));
        // What was torn is part of the ledger now: an edit there shows too.
        let at = torn.len() - 3;
        cut.bytes[at] ^= 1;
        assert!(read(&cut.bytes, Some(&cut.head())).is_err());
    }
}

// Wrong here: any rubbish at the end would pass for a crash.
#[test]
fn what_no_crash_leaves_is_damage() {
    let text = three_runs();
    let head = text.head();
    for rubbish in [
        "hello\n",
        "hello",
        "\n",
        "{}\n",
        "{\"settled\":{\"entry\":7}}\n",
        "{\"settled\":{\"entry\":7\nhello",
        "{\"settled\":{\"entry\":7\n{\"reserved\":{\"entry\":7}}\n",
    ] {
        let bytes = [&text.bytes, rubbish.as_bytes()].concat();
        for head in [None, Some(&head)] {
            assert!(read(&bytes, head).is_err(), "{rubbish:?}");
        }
    }
    // A repair of what is not torn would let lines be covered up.
    let mut covered = three_runs();
    covered.add(|entry, previous| Entry::Recovered {
        entry,
        previous,
        offset: 10,
        length: 5,
        hash: EntryHash::of(b""),
    });
    let error = read(&covered.bytes, None).unwrap_err();
    assert!(
        error.contains("repairs an entry that is not torn"),
        "{error}"
    );
}

#[test]
fn entries_that_contradict_others_are_refused() {
    type Change = fn(&mut Text);
    let cases: [(Change, &str); 6] = [
        (
            |t| t.settle(3, Outcome::Completed, 7),
            "not a run under way",
        ),
        (
            |t| t.settle(2, Outcome::Completed, 7),
            "not a run under way",
        ),
        (
            |t| t.settle(6, Outcome::Completed, 8),
            "more releases than entry 6 reserved",
        ),
        (
            |t| t.settle(6, Outcome::NothingReleased, 1),
            "released something",
        ),
        (
            |t| {
                let Entry::Ledger(again) = serde_json::from_slice(&first_line()).unwrap() else {
                    panic!("the first line");
                };
                t.add(|_, _| Entry::Ledger(again));
            },
            "second first line",
        ),
        (
            |t| {
                let event = "{\"gaussian\":{\"what\":\"x\",\"clip\":1.0,\"sensitivity\":1.0,\"sigma\":9.0,\"lattice\":null,\"count\":1}}";
                let events = vec![serde_json::from_str(event).unwrap()];
                t.add(|entry, previous| Entry::Reserved {
                    entry,
                    previous,
                    date: String::new(),
                    run: String::new(),
                    events,
                    part: None,
                    token: None,
                });
            },
            "does not make a sensitivity of 1 under substitute",
        ),
    ];
    for (change, word) in cases {
        let mut text = three_runs();
        change(&mut text);
        let error = read(&text.bytes, None).unwrap_err();
        assert!(error.contains(word), "{error}");
        assert!(error.contains("entry 7 (at byte"), "{error}");
    }
}

#[test]
fn files_that_are_no_ledgers_say_so() {
    let line = String::from_utf8(first_line()).unwrap();
    let replaced = |from: &str, to: &str| {
        assert!(line.contains(from), "{line}");
        line.replacen(from, to, 1)
    };
    for (text, word) in [
        (String::new(), "first line is missing"),
        (line.trim_end().to_owned(), "incomplete"),
        ("epsilon,delta\n1,2\n".to_owned(), "not that of a ledger"),
        (replaced("\"format\":1", "\"format\":2"), "of format 2"),
        (
            replaced("\"epsilon\":1.0", "\"epsilon\":-1.0"),
            "epsilon is -1",
        ),
        (replaced("gaussian", "pld"), "cannot keep a ledger"),
        (replaced("\"record\"", "\"\""), "is not a name"),
        (
            replaced("\"unit\"", "\"more\":1,\"unit\""),
            "not that of a ledger",
        ),
    ] {
        let error = read(text.as_bytes(), None).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

// Reading on from where one stopped gives what reading from the start gives.
#[test]
fn reading_on_is_reading() {
    let text = three_runs();
    let head = text.head();
    let lines: Vec<&[u8]> = text.bytes.split_inclusive(|&byte| byte == b'\n').collect();
    for stop in 1..=lines.len() {
        let mut chain = read(&lines[..stop].concat(), None).unwrap();
        chain
            .read_on(lines[stop..].concat().as_slice(), Some(&head))
            .unwrap();
        let whole = read(&text.bytes, Some(&head)).unwrap();
        assert_eq!((chain.end, chain.last), (whole.end, whole.last));
        assert_eq!(chain.books.tally, whole.books.tally);
        assert_eq!(chain.books.balance.spent(), whole.books.balance.spent());
    }
}

// A million lines of a ledger that has seen much.
#[test]
#[ignore = "a million entries: some seconds"]
fn a_million_entries_are_read() {
    let mut text = Text::new();
    for _ in 0..500_000 {
        text.reserve();
        text.settle(text.entries, Outcome::Completed, 7);
    }
    let chain = Chain::read(&text.bytes[..], Some(&text.head()), false).unwrap();
    assert_eq!(chain.books.tally.completed, 500_000);
    assert_eq!((chain.entries, chain.last), (1_000_001, text.last));
}
