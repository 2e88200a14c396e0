//! Several seeds at once, each in one thread, with their results in the order of the seeds.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

/// Does work 0, 1, 2 … in so many threads for as long as `goes_on` says so, and hands over what came of
/// each in this order, whichever thread was first.
pub fn in_order<T: Send>(
    jobs: usize,
    goes_on: impl Fn(u64) -> bool + Sync,
    work: impl Fn(u64) -> T + Sync,
    mut each: impl FnMut(T),
) {
    let next = Mutex::new(0);
    // Under a lock, so that no number is left out where `goes_on` says no to one thread first.
    let take = || {
        let mut next = next.lock();
        let number = *next;
        goes_on(number).then(|| {
            *next += 1;
            number
        })
    };
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let sender = sender.clone();
            let (take, work) = (&take, &work);
            scope.spawn(move || {
                while let Some(number) = take() {
                    if sender.send((number, work(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (number, result) in receiver {
            early.insert(number, result);
            while let Some(result) = early.remove(&due) {
                each(result);
                due += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn results_come_in_order_whatever_thread_is_first() {
        let mut got = Vec::new();
        let work = |number: u64| {
            if number.is_multiple_of(3) {
                std::thread::yield_now();
            }
            number
        };
        in_order(4, |number| number < 500, work, |number| got.push(number));
        assert_eq!(got, (0..500).collect::<Vec<u64>>());
    }
}
