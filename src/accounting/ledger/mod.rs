//! The ledger: one budget for all analyses of one data set.
//!
//! A [`Session`] is the budget; with a file behind it, it is a ledger. The file has a
//! line for each thing that happened: the terms; a run's schedule, charged before its
//! first release; how it ended. Nothing is ever changed or taken out. docs/ledger.md tells a
//! privacy officer what that proves and what it does not prove.
//!
//! | file | holds |
//! |---|---|
//! | `terms` | what the budget is for |
//! | `balance` | the filter: what is charged, and whether another run fits |
//! | `part` | parts of the data without a record in common |
//! | `stored_event`, `entry`, `hash` | the lines of the file |
//! | `books` | what the entries add up to |
//! | `chain` | reading: the chain of hashes, and tails that a crash has torn |
//! | `head` | the file next to it that shows missing lines |
//! | `file` | locking, and appending so that a crash loses no charge |
//! | `watermark` | a bound on the releases of a resumable run |
//! | `slot` | values on the disk that are whole or recognisably not |
//! | `evidence` | what a run's report says, against the ledger |
//! | `session` | the interface |

mod balance;
mod books;
mod chain;
mod entry;
mod error;
mod evidence;
mod file;
mod hash;
mod head;
mod part;
mod session;
mod slot;
mod stored_event;
mod terms;
mod watermark;

pub use balance::Quote;
pub use books::{EntryRef, RunRecord, Tally};
pub use entry::Outcome;
pub(crate) use error::figure;
pub use error::{Damage, LedgerError};
pub use evidence::Evidence;
pub(crate) use file::try_for_a_moment;
pub use hash::{EntryHash, NotAHash};
pub(crate) use head::sync_folder;
pub use part::Part;
pub use session::{Request, Reservation, Session, Settlement, Statement};
pub(crate) use slot::{Slot, read_slot, slot_bytes};
pub use stored_event::StoredEventError;
pub use terms::{Terms, TermsError};
pub use watermark::{Grant, random_id};
