//! The items that the declaration of a table generates: the table, a row of it, and its rows by
//! column.

/// Rows for which a new batch sets memory aside at most.
pub(super) const MAX_RESERVED: usize = 1 << 20;

/// The value in a row, by [`ColumnType`].
pub(super) mod value {
    pub type I64 = i64;
    pub type I32 = i32;
    pub type Bool = bool;
    pub type Str = crate::StrId;
    pub type Blob = crate::StrId;
    pub type ListI64 = Vec<i64>;
}

macro_rules! nullable {
    (null, $null:expr, $set:expr) => {
        $null
    };
    (set, $null:expr, $set:expr) => {
        $set
    };
}

macro_rules! holds {
    () => {
        None
    };
    ($holds:ident) => {
        Some(Holds::$holds)
    };
}

macro_rules! stored {
    () => {
        Stored::AsIs
    };
    (hidden) => {
        Stored::Hidden
    };
    (less $name:literal [$($term:expr),*]) => {
        Stored::Less {
            name: $name,
            terms: &[$($term),*],
        }
    };
}

macro_rules! tables {
    ($($(#[doc = $table_doc:literal])* $konst:ident $table:ident $rows:ident $row:ident key [$($key:literal),*] {
        $($(#[doc = $doc:literal])* $column:ident: $ty:ident$(($holds:ident))? $null:ident
            $($how:ident $($stored:literal [$($term:expr),*])?)?,)*
    })*) => {
        $(
            $(#[doc = $table_doc])*
            pub static $konst: Table = Table {
                name: stringify!($table),
                doc: concat!($($table_doc, "\n"),*),
                columns: &[$(Column {
                    name: stringify!($column),
                    ty: ColumnType::$ty,
                    nullable: nullable!($null, true, false),
                    doc: concat!($($doc, "\n"),*),
                    holds: holds!($($holds)?),
                    stored: stored!($($how $($stored [$($term),*])?)?),
                }),*],
                key: &[$($key),*],
            };

            #[doc = concat!("One row of table `", stringify!($table), "`.")]
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $row {
                $($(#[doc = $doc])* pub $column: value::$ty,)*
            }

            /// Null in every column that can be null; elsewhere 0, false or nothing.
            impl Default for $row {
                fn default() -> Self {
                    Self { $($column: nullable!($null, Null::NULL, Default::default()),)* }
                }
            }

            #[doc = concat!("Rows of table `", stringify!($table), "`, one vector a column.")]
            #[derive(Clone, Debug, Default)]
            pub struct $rows {
                $($(#[doc = $doc])* pub $column: Vec<value::$ty>,)*
            }

            impl $rows {
                /// Adds a row.
                #[inline]
                pub fn push(&mut self, row: $row) {
                    // Taken apart first, so that no copy of the row is made in memory.
                    let $row { $($column),* } = row;
                    $(self.$column.push($column);)*
                }

                /// Adds rows of a table whose first column is never null, column by column: of a
                /// row with many columns that takes half as many instructions as to push it. The
                /// nulls of a column that is null in all of them are not written: [`Self::level`]
                /// adds them, many at once.
                pub fn extend_ragged(&mut self, rows: &[$row]) {
                    #[allow(unused_variables, reason = "no column may be null")]
                    let before = self.len();
                    $(
                        let column = &mut self.$column;
                        let values = rows.iter().map(|row| row.$column.clone());
                        nullable!($null, {
                            let mut known = rows.iter();
                            if known.any(|row| row.$column != <value::$ty as Null>::NULL) {
                                column.resize(before, Null::NULL);
                                column.extend(values);
                            }
                        }, column.extend(values));
                    )*
                }

                /// Adds the nulls that [`Self::extend_ragged`] has left out. A column that is null in
                /// every row stays empty, as a [`Batch`] has it.
                pub fn level(&mut self) {
                    debug_assert!($konst.columns.first().is_some_and(|c| !c.nullable));
                    #[allow(unused_variables, reason = "no column may be null")]
                    let rows = self.len();
                    $(nullable!($null, if !self.$column.is_empty() {
                        self.$column.resize(rows, Null::NULL);
                    }, ());)*
                }

                /// Replaces row `at`; adds the row when there are no more than `at`.
                pub fn put(&mut self, at: usize, row: $row) {
                    let $row { $($column),* } = row;
                    $(match self.$column.get_mut(at) {
                        Some(place) => *place = $column,
                        None => self.$column.push($column),
                    })*
                }

                /// Number of rows.
                #[inline]
                pub fn len(&self) -> usize {
                    let [rows, ..] = [$(self.$column.len()),*];
                    rows
                }

                /// Whether there are no rows.
                pub fn is_empty(&self) -> bool {
                    self.len() == 0
                }

                /// The rows as a batch; `strings` is what their strings refer to.
                pub fn into_batch(self, strings: StringTable) -> Batch {
                    Batch {
                        table: &$konst,
                        columns: vec![$(ColumnData::$ty(self.$column)),*],
                        strings,
                    }
                }

                /// The rows of a batch of this table and their strings, with all nulls; `None`
                /// for a batch of another table.
                pub fn from_batch(batch: Batch) -> Option<(Self, StringTable)> {
                    #[allow(unused_variables, reason = "no column may be null")]
                    let rows = batch.len();
                    let mut columns = batch.columns.into_iter();
                    #[allow(unused_mut, reason = "no column may be null")]
                    let rows = Self {
                        $($column: match columns.next()? {
                            ColumnData::$ty(mut values) => {
                                nullable!($null, values.resize(rows, Null::NULL), ());
                                values
                            }
                            _ => return None,
                        }),*
                    };
                    std::ptr::eq(batch.table, &$konst).then_some((rows, batch.strings))
                }

                /// The rows; as many find room in what is left, in the columns that had values.
                pub fn take(&mut self) -> Self {
                    let room = |len: usize| len.min(MAX_RESERVED);
                    let next = Self { $($column: Vec::with_capacity(room(self.$column.len()))),* };
                    std::mem::replace(self, next)
                }

                /// Removes all rows, keeps the memory.
                pub fn clear(&mut self) {
                    $(self.$column.clear();)*
                }
            }
        )*

        /// Every table, in the order in which they are documented.
        pub static TABLES: &[&Table] = &[$(&$konst),*];
    };
}
