//! The functions and lines that places in files belong to.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use super::Place;
use super::objects::Objects;

#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Bytes from its beginning.
    pub(crate) offset: Option<i64>,
    /// File of its source, empty when not known.
    pub(crate) source: String,
    /// Line in it, 0 when not known.
    pub(crate) line: u32,
}

/// The functions at places: of code that was inlined, the innermost first.
pub(crate) fn of(places: Vec<Place>, objects: &Objects) -> HashMap<Place, Vec<Function>> {
    let mut of_object: HashMap<u32, Vec<u64>> = HashMap::new();
    for place in places {
        if let Some(object) = place.object {
            of_object.entry(object).or_default().push(place.at);
        }
    }
    let symbolizer = Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_code_info(true)
        .enable_inlined_fns(true)
        .enable_demangling(true)
        .build();
    let mut found = HashMap::new();
    for (object, mut offsets) in of_object {
        offsets.sort_unstable();
        offsets.dedup();
        let Some(path) = objects.get(object).and_then(|o| o.open_path()) else {
            continue;
        };
        // The line of a call belongs to the instruction before its return address.
        let calls: Vec<u64> = offsets.iter().map(|at| at.saturating_sub(1)).collect();
        let source = Source::Elf(Elf::new(path));
        // The file may be anything: a panic in its reader must not be ours.
        let symbols = catch_unwind(AssertUnwindSafe(|| {
            let symbols = symbolizer
                .symbolize(&source, Input::FileOffset(&calls))
                .ok()?;
            Some(symbols.iter().map(functions).collect::<Vec<_>>())
        }));
        for (at, functions) in offsets
            .iter()
            .zip(symbols.ok().flatten().unwrap_or_default())
        {
            let place = Place {
                object: Some(object),
                at: *at,
            };
            if !functions.is_empty() {
                found.insert(place, functions);
            }
        }
    }
    found
}

fn functions(symbol: &Symbolized) -> Vec<Function> {
    let Symbolized::Sym(symbol) = symbol else {
        return Vec::new();
    };
    let Sym {
        name,
        addr,
        offset,
        code_info,
        inlined,
        ..
    } = symbol;
    // From the outside in: each has the line at which the next one was inlined.
    let outer = Function {
        name: name.to_string(),
        // The line of the return address. Functions in several pieces have no start.
        offset: i64::try_from(*offset)
            .ok()
            .filter(|_| *addr != 0)
            .map(|offset| offset + 1),
        ..at(code_info.as_deref())
    };
    let inner = inlined.iter().map(|function| Function {
        name: function.name.to_string(),
        ..at(function.code_info.as_ref())
    });
    let mut all: Vec<Function> = std::iter::once(outer).chain(inner).collect();
    all.reverse();
    all
}

fn at(code: Option<&CodeInfo>) -> Function {
    code.map_or_else(Function::default, |code| Function {
        source: code.to_path().to_string_lossy().into_owned(),
        line: code.line.unwrap_or(0),
        ..Function::default()
    })
}
