//! Names of Kubernetes' containers, and the rows of table `containers`.

use fathom_model::batch::Batch;
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{ContainerRow, ContainerRows};
use fathom_model::{StrId, StringTable};
use hashbrown::HashMap;

/// Containers that are remembered, to write their rows again.
const MAX_CONTAINERS: usize = 1 << 16;

#[derive(Debug)]
struct Named {
    /// Namespace, name and UID of the pod, and name of the container.
    names: [String; 4],
    /// When the row was written last.
    written_ns: u64,
}

/// The containers that have names.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    named: HashMap<String, Named>,
    rows: ContainerRows,
    strings: StringTable,
}

impl Containers {
    /// Takes the id of a container, then namespace, name and UID of its pod, and its own name.
    pub(crate) fn named(&mut self, now_ns: u64, names: [&[u8]; 5]) {
        let [id, namespace, pod, uid, name] = names.map(|n| escape_invalid_utf8(n).into_owned());
        let names = [namespace, pod, uid, name];
        self.write(&id, &names);
        if self.named.len() < MAX_CONTAINERS {
            let written_ns = now_ns;
            self.named.insert(id, Named { names, written_ns });
        }
    }

    /// A row that is written at `now_ns` refers to the container: its own is written again if it is
    /// older than `age_ns`.
    pub(crate) fn used(&mut self, id: &str, now_ns: u64, age_ns: u64) {
        if let Some(named) = self.named.get_mut(id)
            && now_ns.saturating_sub(named.written_ns) > age_ns
        {
            named.written_ns = now_ns;
            let names = named.names.clone();
            self.write(id, &names);
        }
    }

    fn write(&mut self, id: &str, names: &[String; 4]) {
        let strings = &mut self.strings;
        let mut intern = |text: &str| match text {
            "" => StrId::NULL,
            text => strings.intern(text.as_bytes()),
        };
        let [namespace, pod, pod_uid, name] = names.each_ref().map(|text| intern(text));
        self.rows.push(ContainerRow {
            container_id: intern(id),
            namespace,
            pod,
            pod_uid,
            name,
        });
    }

    /// The rows since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        let rows = std::mem::take(&mut self.rows);
        rows.into_batch(std::mem::take(&mut self.strings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(containers: &mut Containers) -> Vec<String> {
        let batch = containers.take();
        (0..batch.len())
            .map(|row| {
                let texts = batch.columns.iter().map(|column| match column {
                    fathom_model::batch::ColumnData::Str(ids) if ids[row] == StrId::NULL => {
                        "null".into()
                    }
                    fathom_model::batch::ColumnData::Str(ids) => {
                        String::from_utf8_lossy(batch.strings.get(ids[row])).into_owned()
                    }
                    _ => unreachable!("a column of text"),
                });
                texts.collect::<Vec<_>>().join(" ")
            })
            .collect()
    }

    #[test]
    fn rows_come_again_when_they_are_old() {
        let mut containers = Containers::default();
        containers.named(100, [b"c1", b"shop", b"db-0", b"u-1", b"postgres"]);
        containers.named(100, [b"c2", b"shop", b"web-7", b"", b"nginx"]);
        let rows = taken(&mut containers);
        assert_eq!(
            rows,
            ["c1 shop db-0 u-1 postgres", "c2 shop web-7 null nginx"]
        );
        containers.used("c1", 150, 50);
        containers.used("c3", 500, 50);
        assert!(taken(&mut containers).is_empty());
        containers.used("c1", 151, 50);
        containers.used("c1", 160, 50);
        assert_eq!(taken(&mut containers), ["c1 shop db-0 u-1 postgres"]);
    }
}
