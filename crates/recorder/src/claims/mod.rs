//! Claims of persistent volumes (PersistentVolumeClaim), as rows of table `volume_claims`.
//!
//! The kubelet mounts a persistent volume at `/var/lib/kubelet/pods/UID/volumes/PLUGIN/NAME`, where
//! NAME is the name of the PersistentVolume. Nothing on the node says which claim it is bound to: the
//! kubelet's own API has the claims of a pod by other names. Only the PersistentVolume itself has its
//! claim (`spec.claimRef`), so Kubernetes' API is asked for each volume once.
//!
//! A thread of its own asks, because an answer may take seconds, and the rings do not wait.

mod api;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_model::Batch;
use fathom_model::StringTable;
use fathom_model::container::is_dns_name;
use fathom_model::tables::{VolumeClaimRow, VolumeClaimRows};

use api::{Api, Claim};

/// How often the mounts are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// How long the end of a recording waits for the last answers.
const PATIENCE: Duration = Duration::from_secs(6);
/// Volumes at most; a node has some hundred.
const MOST: usize = 1 << 14;
/// Failures after which a look ends: each may cost the time that the server has to answer.
const MOST_FAILURES: usize = 3;
/// Failures that are reported; the later ones are like them.
const MOST_REPORTS: usize = 5;

/// Volumes that belong to their pod and have no claim.
const WITHOUT_CLAIM: [&str; 6] = [
    "kubernetes.io~empty-dir",
    "kubernetes.io~configmap",
    "kubernetes.io~secret",
    "kubernetes.io~projected",
    "kubernetes.io~downward-api",
    "kubernetes.io~git-repo",
];

/// How Kubernetes' API is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubernetes {
    /// `https://HOST:PORT`, or `in-cluster` for the address that Kubernetes gives to its pods.
    pub server: String,
    /// File with a bearer token; read for each request, as such tokens are renewed.
    pub token: Option<PathBuf>,
    /// File with the certificates (PEM) of the authorities that the server's certificate is from.
    pub authority: Option<PathBuf>,
    /// File with a client's certificate and its key (PEM).
    pub certificate: Option<PathBuf>,
}

/// A claim for the directory of a volume, or why there is none.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Row { directory: String, claim: Claim },
    Failure(String),
}

/// Asks while a recording goes on.
pub(crate) struct Claims {
    news: Receiver<News>,
    /// Dropped at the end.
    goes_on: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    reported: HashSet<String>,
}

impl Claims {
    /// Starts to ask.
    ///
    /// # Errors
    /// Wrong addresses and files, as a message.
    pub(crate) fn start(options: &Kubernetes) -> Result<Self, String> {
        let api = Api::new(options)?;
        let (goes_on, ended) = channel();
        let (tell, news) = channel();
        let worker = Worker::new(tell);
        let ask = move |volume: &str| api.claim_of(volume);
        let thread = std::thread::Builder::new()
            .name("fathom-claims".to_owned())
            .spawn(move || worker.run(&ended, &mounts, &ask))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self {
            news,
            goes_on: Some(goes_on),
            thread: Some(thread),
            reported: HashSet::new(),
        })
    }

    /// The rows since the last time, and failures to report.
    pub(crate) fn take(&mut self) -> (Option<Batch>, Vec<String>) {
        let all: Vec<News> = self.news.try_iter().collect();
        self.sorted(all)
    }

    /// The same at the end, with the answers that are still on their way.
    pub(crate) fn finish(&mut self) -> (Option<Batch>, Vec<String>) {
        drop(self.goes_on.take());
        let deadline = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok(news) => all.push(news),
                Err(RecvTimeoutError::Disconnected) => {
                    // It has nothing left to do.
                    if let Some(thread) = self.thread.take() {
                        thread.join().ok();
                    }
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {
                    let late =
                        "the last volumes have no claim: Kubernetes' API did not answer in time";
                    all.push(News::Failure(late.to_owned()));
                    break;
                }
            }
        }
        self.sorted(all)
    }

    fn sorted(&mut self, all: Vec<News>) -> (Option<Batch>, Vec<String>) {
        let mut rows = VolumeClaimRows::default();
        let mut strings = StringTable::new();
        let mut failures = Vec::new();
        let mut any = false;
        for news in all {
            match news {
                News::Row { directory, claim } => {
                    any = true;
                    rows.push(VolumeClaimRow {
                        directory: strings.intern(directory.as_bytes()),
                        namespace: strings.intern(claim.namespace.as_bytes()),
                        claim: strings.intern(claim.name.as_bytes()),
                    });
                }
                News::Failure(text) => {
                    if self.reported.len() < MOST_REPORTS && self.reported.insert(text.clone()) {
                        failures.push(text);
                    }
                }
            }
        }
        (any.then(|| rows.into_batch(strings)), failures)
    }
}

/// The state of the thread.
struct Worker {
    /// Of volumes that are mounted; `None` for one without a claim.
    claims: HashMap<String, Option<Claim>>,
    /// Directories that rows were made of.
    told: HashSet<String>,
    pause_until: Option<Instant>,
    tell: Sender<News>,
}

impl Worker {
    fn new(tell: Sender<News>) -> Self {
        Self {
            claims: HashMap::new(),
            told: HashSet::new(),
            pause_until: None,
            tell,
        }
    }

    /// Looks and asks until `ended` is closed, and once after that.
    fn run(
        mut self,
        ended: &Receiver<()>,
        mounts: &dyn Fn() -> io::Result<String>,
        ask: &dyn Fn(&str) -> Result<Option<Claim>, String>,
    ) {
        loop {
            let last = ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Disconnected);
            // The end waits no longer, and does not wait for a server that has just failed.
            let until = last.then(|| Instant::now() + PATIENCE);
            if self.pause_until.is_none_or(|until| Instant::now() >= until) {
                let looked = mounts().map_err(|error| format!("cannot read the mounts: {error}"));
                if let Err(failure) = looked.and_then(|mounts| self.look(&mounts, ask, until)) {
                    self.pause_until = Some(Instant::now() + PAUSE);
                    self.tell.send(News::Failure(failure)).ok();
                }
            }
            if last {
                return;
            }
        }
    }

    /// Sends the claims of the mounted volumes that are new, `until` then. A volume whose claim the
    /// server did not name is asked for again the next time. The first failure is the error.
    fn look(
        &mut self,
        mounts: &str,
        ask: &dyn Fn(&str) -> Result<Option<Claim>, String>,
        until: Option<Instant>,
    ) -> Result<(), String> {
        let mut failures = Vec::new();
        let volumes: Vec<(&str, &str)> = mounts.lines().filter_map(volume).take(MOST).collect();
        let names: HashSet<&str> = volumes.iter().map(|(_, name)| *name).collect();
        let directories: HashSet<&str> = volumes.iter().map(|(directory, _)| *directory).collect();
        self.claims.retain(|name, _| names.contains(name.as_str()));
        self.told
            .retain(|directory| directories.contains(directory.as_str()));
        for (directory, name) in volumes {
            if self.told.contains(directory) {
                continue;
            }
            // The end waits for one answer that does not come.
            let most = if until.is_some() { 1 } else { MOST_FAILURES };
            if failures.len() >= most || until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let claim = match self.claims.get(name) {
                Some(claim) => claim.clone(),
                None => match ask(name) {
                    Ok(claim) => {
                        self.claims.insert(name.to_owned(), claim.clone());
                        claim
                    }
                    Err(failure) => {
                        failures.push(failure);
                        continue;
                    }
                },
            };
            self.told.insert(directory.to_owned());
            if let Some(claim) = claim {
                let directory = directory.to_owned();
                self.tell.send(News::Row { directory, claim }).ok();
            }
        }
        failures.into_iter().next().map_or(Ok(()), Err)
    }
}

fn mounts() -> io::Result<String> {
    // Names of other mounts may be any bytes.
    let bytes = fs::read("/proc/self/mountinfo")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The directory of a volume that may have a claim, and its name, of a line of mountinfo. Names of
/// volumes are names of DNS, so nothing in the directory is escaped.
fn volume(line: &str) -> Option<(&str, &str)> {
    let point = line.split(' ').nth(4)?;
    let rest = point.strip_prefix("/var/lib/kubelet/pods/")?;
    let mut parts = rest.splitn(5, '/');
    let (pod, volumes) = (parts.next()?, parts.next()?);
    let (plugin, name, below) = (parts.next()?, parts.next()?, parts.next());
    let fits = volumes == "volumes"
        && is_dns_name(pod)
        && is_dns_name(name)
        && plugin.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
        && !WITHOUT_CLAIM.contains(&plugin);
    let directory = point.len() - below.map_or(0, |below| below.len() + 1);
    fits.then_some((point.get(..directory)?, name))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn line(point: &str) -> String {
        format!("36 35 98:0 / {point} rw,noatime master:1 - ext4 /dev/root rw\n")
    }

    const PODS: &str = "/var/lib/kubelet/pods";

    #[test]
    fn mounts_name_volumes() {
        let found = |point: &str| {
            let line = line(point);
            volume(&line).map(|(directory, name)| (directory.to_owned(), name.to_owned()))
        };
        let csi = format!("{PODS}/u-1/volumes/kubernetes.io~csi/pvc-7");
        let expected = Some((csi.clone(), "pvc-7".to_owned()));
        assert_eq!(found(&format!("{csi}/mount")), expected);
        assert_eq!(found(&csi), expected);
        for other in [
            format!("{PODS}/u-1/volumes/kubernetes.io~empty-dir/pvc-7"),
            format!("{PODS}/u-1/volumes/kubernetes.io~projected/kube-api-access-x"),
            format!("{PODS}/u-1/volumes/kubernetes.io~csi"),
            format!("{PODS}/u-1/volume-subpaths/pvc-7/db/0"),
            format!("{PODS}/u-1/volumes/kubernetes.io~csi/a\\040b/mount"),
            format!("{PODS}/u-1/volumes/kubernetes.io~csi/../mount"),
            format!("{PODS}/u-1/volumes/kubernetes.io~csi/A/mount"),
            format!("{PODS}/U/volumes/kubernetes.io~csi/pvc-7/mount"),
            "/var/lib/kubelet/plugins/kubernetes.io/csi/x/globalmount".to_owned(),
            "/".to_owned(),
            String::new(),
        ] {
            assert_eq!(found(&other), None, "{other}");
        }
        assert_eq!(volume(""), None);
    }

    fn worker() -> (Worker, Receiver<News>) {
        let (tell, news) = channel();
        (Worker::new(tell), news)
    }

    fn claim(name: &str) -> Claim {
        Claim {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn each_volume_is_asked_for_once() {
        let (mut worker, news) = worker();
        let asked = RefCell::new(Vec::new());
        let down = RefCell::new(false);
        let ask = |volume: &str| {
            asked.borrow_mut().push(volume.to_owned());
            match (volume, *down.borrow()) {
                (_, true) => Err("down".to_owned()),
                ("refused", _) => Err("refused".to_owned()),
                ("inline", _) => Ok(None),
                (volume, _) => Ok(Some(claim(&format!("of-{volume}")))),
            }
        };
        let csi = |pod: &str, name: &str| {
            line(&format!(
                "{PODS}/{pod}/volumes/kubernetes.io~csi/{name}/mount"
            ))
        };
        let both = csi("u-1", "a") + &csi("u-2", "a") + &csi("u-2", "inline");
        worker.look(&both, &ask, None).unwrap();
        worker.look(&both, &ask, None).unwrap();
        assert_eq!(*asked.borrow(), ["a", "inline"]);
        let rows: Vec<News> = news.try_iter().collect();
        let row = |pod: &str| News::Row {
            directory: format!("{PODS}/{pod}/volumes/kubernetes.io~csi/a"),
            claim: claim("of-a"),
        };
        assert_eq!(rows, [row("u-1"), row("u-2")]);

        // A failure makes no row; the volume is asked for again.
        *down.borrow_mut() = true;
        let more = both.clone() + &csi("u-3", "b");
        assert_eq!(worker.look(&more, &ask, None), Err("down".to_owned()));
        *down.borrow_mut() = false;
        worker.look(&more, &ask, None).unwrap();
        assert_eq!(news.try_iter().count(), 1);
        // A volume that is gone and returns may be bound to another claim.
        worker.look(&csi("u-3", "b"), &ask, None).unwrap();
        assert_eq!((worker.claims.len(), worker.told.len()), (1, 1));
        worker.look(&both, &ask, None).unwrap();
        assert_eq!(news.try_iter().count(), 2);
        assert_eq!(*asked.borrow(), ["a", "inline", "b", "b", "a", "inline"]);

        // One that the server refuses does not stand before the others.
        let more = csi("u-3", "refused") + &csi("u-4", "c");
        assert_eq!(worker.look(&more, &ask, None), Err("refused".to_owned()));
        assert_eq!(news.try_iter().count(), 1);
        // A server that does not answer is not asked for each, and nothing after the end.
        *down.borrow_mut() = true;
        asked.borrow_mut().clear();
        let many: String = (0..9).map(|n| csi("u-5", &format!("v-{n}"))).collect();
        assert!(worker.look(&many, &ask, None).is_err());
        assert_eq!(asked.borrow().len(), MOST_FAILURES);
        worker.look(&many, &ask, Some(Instant::now())).unwrap();
        assert_eq!(asked.borrow().len(), MOST_FAILURES);
    }

    #[test]
    fn the_end_looks_once_more() {
        let (worker, news) = worker();
        let (goes_on, ended) = channel::<()>();
        drop(goes_on);
        let mounts = || Ok(line(&format!("{PODS}/u/volumes/kubernetes.io~csi/a/mount")));
        worker.run(&ended, &mounts, &|_| Ok(Some(claim("data"))));
        assert_eq!(news.iter().count(), 1);
    }
}
