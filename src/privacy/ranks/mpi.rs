//! Ranks over MPI.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Root, Source};

use super::{Link, LinkError};

/// The most bytes of one message of MPI, which counts them in 32 bits.
const MOST: usize = 1 << 30;

/// The ranks of a program that `mpirun` or `srun` has started.
///
/// MPI is used by one thread of its own, whichever asks. Its errors end the program on all ranks, as
/// MPI does by itself.
pub struct Mpi {
    rank: usize,
    ranks: usize,
    /// Closed when this is dropped, which ends the thread.
    calls: Option<Sender<Call>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

enum Call {
    Broadcast(Vec<u8>),
    Gather(Vec<u8>),
    Sum(Vec<u64>),
    Abort,
}

enum Answer {
    Place { rank: usize, ranks: usize },
    Bytes(Vec<u8>),
    All(Vec<Vec<u8>>),
    Numbers(Vec<u64>),
}

impl Mpi {
    /// Starts MPI, which a program can do once.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub fn start() -> Result<Mpi, LinkError> {
        let (calls, from_owner) = channel();
        let (to_owner, answers) = channel();
        let thread = std::thread::Builder::new().name("mpi".to_owned());
        let thread = thread
            .spawn(move || serve(&from_owner, &to_owner))
            .map_err(|error| LinkError(error.to_string()))?;
        match answers.recv() {
            Ok(Answer::Place { rank, ranks }) => Ok(Mpi {
                rank,
                ranks,
                calls: Some(calls),
                answers,
                thread: Some(thread),
            }),
            _ => Err(LinkError("MPI does not start".to_owned())),
        }
    }

    fn call(&self, call: Call) -> Result<Answer, LinkError> {
        let lost = || LinkError("MPI has ended".to_owned());
        let calls = self.calls.as_ref().ok_or_else(lost)?;
        calls.send(call).map_err(|_| lost())?;
        self.answers.recv().map_err(|_| lost())
    }
}

impl Link for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn broadcast(&mut self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        match self.call(Call::Broadcast(message))? {
            Answer::Bytes(bytes) => Ok(bytes),
            _ => Err(unexpected()),
        }
    }

    fn gather(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError> {
        match self.call(Call::Gather(message))? {
            Answer::All(all) => Ok(all),
            _ => Err(unexpected()),
        }
    }

    fn sum(&mut self, numbers: Vec<u64>) -> Result<Vec<u64>, LinkError> {
        match self.call(Call::Sum(numbers))? {
            Answer::Numbers(numbers) => Ok(numbers),
            _ => Err(unexpected()),
        }
    }

    fn abort(&mut self) {
        let _ = self.call(Call::Abort);
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.calls = None;
        // MPI must be over before the program is.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn unexpected() -> LinkError {
    LinkError("MPI answered another call".to_owned())
}

/// The thread of MPI.
fn serve(calls: &Receiver<Call>, answers: &Sender<Answer>) {
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        return;
    };
    let world = universe.world();
    let place = Answer::Place {
        rank: world.rank() as usize,
        ranks: world.size() as usize,
    };
    if answers.send(place).is_err() {
        return;
    }
    for call in calls {
        let answer = match call {
            Call::Broadcast(message) => Answer::Bytes(broadcast(&world, message)),
            Call::Gather(message) => Answer::All(gather(&world, message)),
            Call::Sum(numbers) => Answer::Numbers(sum(&world, &numbers)),
            Call::Abort => world.abort(1),
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn broadcast(world: &SimpleCommunicator, mut message: Vec<u8>) -> Vec<u8> {
    let root = world.process_at_rank(0);
    let mut length = message.len() as u64;
    root.broadcast_into(&mut length);
    message.resize(length as usize, 0);
    for part in message.chunks_mut(MOST) {
        root.broadcast_into(part);
    }
    message
}

fn gather(world: &SimpleCommunicator, message: Vec<u8>) -> Vec<Vec<u8>> {
    if world.rank() != 0 {
        let root = world.process_at_rank(0);
        root.send(&(message.len() as u64));
        for part in message.chunks(MOST) {
            root.send(part);
        }
        return Vec::new();
    }
    let mut all = vec![message];
    for rank in 1..world.size() {
        let other = world.process_at_rank(rank);
        let (length, _) = other.receive::<u64>();
        let mut message = vec![0u8; length as usize];
        for part in message.chunks_mut(MOST) {
            other.receive_into(part);
        }
        all.push(message);
    }
    all
}

fn sum(world: &SimpleCommunicator, numbers: &[u64]) -> Vec<u64> {
    let root = world.process_at_rank(0);
    if world.rank() != 0 {
        root.reduce_into(numbers, SystemOperation::sum());
        return Vec::new();
    }
    let mut sum = vec![0u64; numbers.len()];
    root.reduce_into_root(numbers, &mut sum, SystemOperation::sum());
    sum
}
