//! `fathom top`: probe -> rows -> sums -> terminal.

mod feed;

use fathom_model::layers::LayerSet;
use fathom_probe::usual_layers;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use fathom_probe::{Content, Detail, Probe, ProbeError, ProbeOptions, Selection, system};
use fathom_top::screen::Screen;
use fathom_top::{Action, Frame, View, print};

use crate::args_top::{TopArgs, TopFormat};
use crate::exit::Failure;
use crate::record::filters;
use feed::{Feed, Work};

/// Runs `top` and returns the exit status.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    let selection = Selection::parse(&args.syscalls).map_err(Failure::input)?;
    let layers = match args.layers[..] {
        [] => usual_layers(&selection),
        _ => LayerSet::parse(&args.layers).map_err(Failure::input)?,
    };
    let filters = filters::parse(&args.filter, &selection).map_err(Failure::input)?;
    let pids = filters.pids().to_vec();
    let open_ended = filters.open_ended() || pids.is_empty();
    let options = ProbeOptions {
        layers,
        detail: Detail::Fds,
        selection,
        ring_mib: args.ring_mib,
        all_tasks: pids.is_empty(),
        follow: false,
        content: Content::None,
        content_max: 0,
        filters,
        counters: false,
        stacks: false,
        perf_counters: Default::default(),
    };
    // What is looked at must not keep fathom from looking.
    system::set_nice(system::nice() - 10);
    let mut probe = Probe::load(&options).map_err(|error| match error {
        ProbeError::NoFilter(_) => Failure::input(error),
        _ => Failure::recording(error),
    })?;
    probe.attach().map_err(Failure::recording)?;
    let tasks = probe.adopt(&pids).map_err(|error| match error {
        ProbeError::NoProcess { .. } | ProbeError::Itself(_) => Failure::input(error),
        _ => Failure::recording(error),
    })?;
    let given = filters::as_given(&args.filter);
    let target = if given.is_empty() {
        "everything".to_string()
    } else {
        given.join(" ")
    };
    let (work, feed) = Work::new(probe, tasks, open_ended);
    let mut top = Top {
        view: View {
            dimension: args.by.into(),
            sort: args.sort,
            since_start: args.since_start,
            filter: args.only.clone(),
            ..View::default()
        },
        feed,
        left: args.count,
        interval: args.interval,
    };
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    let (format, lines) = (args.format, args.lines);
    // The probe stays with the thread that made it.
    let shows = std::thread::Builder::new()
        .name("fathom-screen".into())
        .spawn(move || match format {
            None if terminal => top.draw(&mut Screen::open(&target)?),
            _ => top.print(format.unwrap_or(TopFormat::Text), lines),
        })
        .map_err(Failure::recording)?;
    let worked = work.run();
    let shown = shows
        .join()
        .unwrap_or_else(|_| Err(anyhow!("the thread that shows frames panicked")));
    worked.map_err(Failure::recording)?;
    shown.map_err(Failure::recording)?;
    Ok(0)
}

struct Top {
    view: View,
    feed: Feed,
    left: Option<u64>,
    interval: Duration,
}

impl Top {
    /// The next frame, and whether it is the last.
    fn frame(&mut self) -> anyhow::Result<(Frame, bool)> {
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        if self.left == Some(0) || self.feed.ended() {
            return Ok((self.feed.last()?, true));
        }
        Ok((self.feed.frame()?, false))
    }

    fn draw(&mut self, screen: &mut Screen) -> anyhow::Result<()> {
        // The first is early, so that there is something to see.
        let mut next = Instant::now() + self.interval.min(Duration::from_millis(250));
        let mut frame = Frame::default();
        let mut last = false;
        loop {
            screen.draw(&self.view, &frame)?;
            if screen.keys_until(next, &mut self.view, &frame)? == Action::Quit {
                return Ok(());
            }
            next = Instant::now() + self.interval;
            if last {
                // What has ended stays to be looked at, unless frames are counted.
                if self.left.is_some() {
                    return Ok(());
                }
                continue;
            }
            (frame, last) = self.frame()?;
        }
    }

    fn print(&mut self, format: TopFormat, lines: usize) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let mut next = Instant::now();
        loop {
            next += self.interval;
            while Instant::now() < next && !self.feed.ended() {
                let left = next.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(Duration::from_millis(50)));
            }
            let (frame, last) = self.frame()?;
            match format {
                TopFormat::Text => print::text(&self.view, &frame, lines, &mut out)?,
                TopFormat::Json => print::json(&frame, &mut out)?,
            }
            out.flush()?;
            if last {
                return Ok(());
            }
        }
    }
}
