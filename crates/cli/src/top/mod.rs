//! `fathom top`: probe -> rows -> sums -> terminal.

mod frames;
mod recording;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use fathom_recorder::{Detail, Options, RowStream, Target, filters_as_given};
use fathom_top::screen::Screen;
use fathom_top::{Action, Frame, View, print};

use crate::args::{TopArgs, TopFormat};
use crate::exit::Failure;
use frames::{Frames, Work};
use recording::{Recording, report};

/// Runs `top` and returns the exit status.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    let given = filters_as_given(&args.filter.filters());
    let shown = match given.is_empty() {
        true => "everything".to_string(),
        false => given.join(" "),
    };
    let mut filters = args.filter.filters();
    let target = Target::Processes {
        pids: std::mem::take(&mut filters.pid),
        children: false,
    };
    let options = Options {
        syscalls: args.syscalls.clone(),
        layers: args.layers.clone(),
        detail: Detail::Fds,
        filters,
        ring_mib: args.ring_mib,
        ..Options::default()
    };
    let recording = Recording::of(args);
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    // On a screen the first frame comes early, so that it is not empty for long.
    let first = match args.format {
        None if terminal => args.interval.min(Duration::from_millis(250)),
        _ => args.interval,
    };
    let rows = RowStream::open(&options, &target)?;
    let (work, frames) = Work::new(rows, first, args.interval);
    let mut top = Top {
        view: View {
            dimension: args.by.into(),
            sort: args.sort,
            since_start: args.since_start,
            filter: args.only.clone(),
            ..View::default()
        },
        frames,
        recording,
        left: args.count,
        first,
        interval: args.interval,
    };
    let (format, lines) = (args.format, args.lines);
    // The probe stays with the thread that made it.
    let shows = std::thread::Builder::new()
        .name("fathom-screen".into())
        .spawn(move || match format {
            None if terminal => top.draw(&mut Screen::open(&shown)?),
            _ => top
                .print(format.unwrap_or(TopFormat::Text), lines)
                .map(|()| None),
        })
        .map_err(Failure::recording)?;
    let worked = work.run();
    let ended = shows
        .join()
        .unwrap_or_else(|_| Err(anyhow!("the thread that shows frames panicked")));
    worked.map_err(Failure::recording)?;
    match ended.map_err(Failure::recording)? {
        Some(session) => report(&session),
        None => Ok(0),
    }
}

struct Top {
    view: View,
    frames: Frames,
    recording: Recording,
    left: Option<u64>,
    first: Duration,
    interval: Duration,
}

impl Top {
    /// The next frame, and whether it is the last.
    fn frame(&mut self) -> anyhow::Result<(Frame, bool)> {
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        if self.left == Some(0) || self.frames.ended() {
            return Ok((self.frames.last()?, true));
        }
        Ok((self.frames.next()?, false))
    }

    /// Draws until the user ends it; returns the session that is to be reported.
    fn draw(&mut self, screen: &mut Screen) -> anyhow::Result<Option<PathBuf>> {
        let mut next = Instant::now() + self.first;
        let mut frame = Frame::default();
        let mut last = false;
        loop {
            if let Some(notice) = self.recording.poll() {
                self.view.notice = notice;
            }
            screen.draw(&self.view, &frame)?;
            match screen.keys_until(next, &mut self.view, &frame)? {
                Action::None => {}
                Action::Quit => return Ok(None),
                Action::Record => {
                    self.view.notice = self.recording.start(self.view.scope(&frame));
                    continue;
                }
                Action::Open => match self.recording.made() {
                    Some(session) => return Ok(Some(session)),
                    None => {
                        self.view.notice = "nothing is recorded yet: press w".to_owned();
                        continue;
                    }
                },
            }
            next = Instant::now() + self.interval;
            if last {
                // The last frame stays on the screen, unless --count limits the frames.
                if self.left.is_some() {
                    return Ok(None);
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
            while Instant::now() < next && !self.frames.ended() {
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
