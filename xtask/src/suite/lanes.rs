//! Runs jobs in parallel lanes; a lane that has run out of jobs takes those of other lanes.

use super::job::{Failed, Job, Printed, Setting, counted, failed_tests, finish};
use super::room::Room;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A queue of jobs, and the number of workers that run them. A worker whose lane is empty takes jobs of the fullest lane.
pub(super) struct Lane {
    pub(super) jobs: VecDeque<Job>,
    pub(super) workers: usize,
}

/// Runs all jobs and returns those that failed. Prints a line per job name once its last job has ended, and the output of each
/// failed job.
pub(super) fn run_lanes(lanes: Vec<Lane>, setting: &Setting) -> Vec<Failed> {
    let progress = Progress::new(lanes.iter().flat_map(|lane| &lane.jobs));
    let workers: Vec<usize> =
        lanes.iter().enumerate().flat_map(|(own, lane)| vec![own; lane.workers]).collect();
    let left = Mutex::new(lanes.into_iter().map(|lane| lane.jobs).collect::<Vec<_>>());
    let room = Room::default();
    let work = |own: usize| {
        let mut failed = Vec::new();
        while let Some(job) = next(&left, own) {
            let _taken = job.is_timed.then(|| room.take());
            failed.extend(run(job, &progress, setting));
        }
        failed
    };
    let work = &work;
    std::thread::scope(|scope| {
        let start = |own: usize| scope.spawn(move || work(own));
        let workers: Vec<_> = workers.into_iter().map(start).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no job panics")).collect()
    })
}

/// The next job of a worker's lane; if that is empty, of the fullest lane.
fn next(left: &Mutex<Vec<VecDeque<Job>>>, own: usize) -> Option<Job> {
    let mut lanes = held(left);
    let fullest = (0..lanes.len()).max_by_key(|at| lanes[*at].len())?;
    let from = if lanes[own].is_empty() { fullest } else { own };
    lanes[from].pop_front()
}

fn run(job: Job, progress: &Progress, setting: &Setting) -> Option<Failed> {
    progress.begin(&job.name);
    match finish(&job.name, job.command(&job.tests, setting)) {
        Ok(Printed { out, err }) => {
            print!("{}", setting.skips.take(&job.name, &err));
            progress.end(&job.name, &out);
            None
        }
        Err(error) => {
            let error = format!("{error:#}");
            println!("{error}");
            progress.end(&job.name, &error);
            Some(Failed { tests: failed_tests(&error), job })
        }
    }
}

/// The progress of jobs, by their names.
struct Progress(Mutex<HashMap<String, Part>>);

#[derive(Default)]
struct Part {
    jobs_left: usize,
    began: Option<Instant>,
    /// Numbers of passed, failed and ignored tests.
    tests: [usize; 3],
}

impl Progress {
    fn new<'a>(jobs: impl Iterator<Item = &'a Job>) -> Progress {
        let mut parts = HashMap::<String, Part>::new();
        jobs.for_each(|job| parts.entry(job.name.clone()).or_default().jobs_left += 1);
        Progress(Mutex::new(parts))
    }

    fn begin(&self, name: &str) {
        let mut parts = held(&self.0);
        parts.entry(name.to_owned()).or_default().began.get_or_insert_with(Instant::now);
    }

    /// A job of this name has ended; prints a line if it was the last one.
    fn end(&self, name: &str, output: &str) {
        let mut parts = held(&self.0);
        let part = parts.entry(name.to_owned()).or_default();
        part.jobs_left = part.jobs_left.saturating_sub(1);
        let counted = counted(output).unwrap_or_default();
        part.tests.iter_mut().zip(counted).for_each(|(all, own)| *all += own);
        if part.jobs_left == 0 {
            println!("{}", summary(name, part.tests, part.began.map(|began| began.elapsed())));
        }
    }
}

/// A line with the test harness's counts, if there are any, and the duration.
fn summary(name: &str, tests: [usize; 3], took: Option<Duration>) -> String {
    let took = took.unwrap_or_default().as_secs_f64();
    match tests {
        [0, 0, 0] => format!("{name}: in {took:.1} s"),
        [passed, failed, ignored] => {
            format!("{name}: {passed} passed; {failed} failed; {ignored} ignored in {took:.1} s")
        }
    }
}

/// Locks the mutex; no worker panics while holding one.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().expect("no worker panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> Job {
        Job {
            name: name.to_owned(),
            program: "true".into(),
            args: vec![],
            tests: vec![],
            folder: ".".into(),
            threads: 1,
            is_timed: true,
        }
    }

    #[test]
    fn a_lane_that_is_done_helps_the_one_that_has_most() {
        let jobs = |names: &[&str]| names.iter().map(|name| job(name)).collect::<VecDeque<_>>();
        let left = Mutex::new(vec![jobs(&["a"]), jobs(&["b", "c"]), jobs(&["d", "e", "f", "g"])]);
        let name = |own: usize| next(&left, own).map(|job| job.name);
        let taken: Vec<_> = [0, 0, 0, 0, 1, 2, 0].into_iter().map_while(name).collect();
        assert_eq!(taken, ["a", "d", "e", "f", "b", "g", "c"]);
        assert_eq!((name(0), name(2)), (None, None));
    }

    #[test]
    fn tests_of_several_jobs_are_counted_together() {
        let result =
            |counts: &str| format!("running 3 tests\n\ntest result: {counts}; 0 measured; finished in 0.1s");
        assert_eq!(counted(&result("ok. 2 passed; 0 failed; 1 ignored")), Some([2, 0, 1]));
        assert_eq!(counted(&result("FAILED. 2 passed; 1 failed; 0 ignored")), Some([2, 1, 0]));
        assert_eq!(counted("error: signal: 6"), None);
        let progress = Progress::new([job("a"), job("b"), job("a")].iter());
        progress.begin("a");
        progress.end("a", &result("ok. 2 passed; 0 failed; 1 ignored"));
        progress.end("a", &result("FAILED. 1 passed; 3 failed; 0 ignored"));
        let parts = held(&progress.0);
        let tests = ["a", "b"].map(|name| (parts[name].jobs_left, parts[name].tests));
        assert_eq!(tests, [(0, [3, 3, 1]), (1, [0, 0, 0])]);
        let took = Some(Duration::from_millis(1250));
        assert_eq!(summary("wire", [2, 0, 1], took), "wire: 2 passed; 0 failed; 1 ignored in 1.2 s");
        assert_eq!(summary("labs", [0, 0, 0], took), "labs: in 1.2 s");
    }

    #[test]
    fn the_jobs_of_all_lanes_are_run_whatever_the_workers() {
        let folder = std::env::temp_dir().join(format!("throng-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let touch = |n: usize| Job {
            program: "touch".into(),
            args: vec![n.to_string()],
            folder: folder.clone(),
            ..job("touch")
        };
        let lane = |of: std::ops::Range<usize>, workers| Lane { jobs: of.map(touch).collect(), workers };
        let failed = run_lanes(vec![lane(0..1, 2), lane(1..9, 1), lane(9..9, 3)], &Setting::default());
        let made = std::fs::read_dir(&folder).expect("it was made").count();
        std::fs::remove_dir_all(&folder).expect("it was made");
        assert_eq!((failed.len(), made), (0, 9));
    }
}
