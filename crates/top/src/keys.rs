//! Keys to changes of the view.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::frame::{Dimension, Frame};
use crate::view::{Column, View};

const PAGE: usize = 20;

/// An action that a key asks for beyond the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// A recording of what is on the screen.
    Record,
    /// The report of the recording that was made.
    Open,
    /// The end.
    Quit,
}

/// The keys and their effects, for the help.
pub const KEYS: [(&str, &str); 13] = [
    (
        "Tab, 1 to 6",
        "files, processes, threads, calls, layers, devices",
    ),
    ("< >, s", "sort by another column"),
    ("r", "the other way round"),
    ("/", "only names with a text in them; Esc: all again"),
    ("c", "since the start, or the last interval"),
    ("Space", "freeze, and go on"),
    (
        "w",
        "record what is on the screen for 10 s; with a filter only those names",
    ),
    ("o", "end, and report that recording"),
    ("arrows, j k, Page keys, g", "scroll"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
    (
        "BUSY",
        "time in calls per second: 200 % is two calls in progress all the time",
    ),
    (
        "P50, P99",
        "rounded up to the end of a power of two of nanoseconds",
    ),
];

impl View {
    /// Does what a key asks for; `frame` is the latest.
    pub fn key(&mut self, key: KeyEvent, frame: &Frame) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Action::Quit,
                _ => Action::None,
            };
        }
        if self.typing {
            self.type_filter(key.code);
            return Action::None;
        }
        if self.help {
            self.help = false;
            return Action::None;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('w') => return Action::Record,
            KeyCode::Char('o') => return Action::Open,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => {
                self.filter.clear();
                self.notice.clear();
            }
            KeyCode::Char(' ') => {
                self.frozen = match self.frozen.take() {
                    Some(_) => None,
                    None => Some(Box::new(frame.clone())),
                }
            }
            KeyCode::Char('c') => self.since_start = !self.since_start,
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('s' | '>' | '.') | KeyCode::Right => {
                self.sort = next(&Column::ALL, self.sort, 1)
            }
            KeyCode::Char('<' | ',') | KeyCode::Left => {
                self.sort = next(&Column::ALL, self.sort, -1)
            }
            KeyCode::Tab => self.show(next(&Dimension::ALL, self.dimension, 1)),
            KeyCode::BackTab => self.show(next(&Dimension::ALL, self.dimension, -1)),
            KeyCode::Char(digit @ '1'..='6') => {
                let place = digit as usize - '1' as usize;
                if let Some(dimension) = Dimension::ALL.get(place) {
                    self.show(*dimension);
                }
            }
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1, frame),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.scroll(PAGE, frame),
            KeyCode::PageUp => self.first = self.first.saturating_sub(PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.first = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll(usize::MAX, frame),
            _ => {}
        }
        Action::None
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        self.first = 0;
    }

    fn show(&mut self, dimension: Dimension) {
        self.dimension = dimension;
        self.first = 0;
    }

    fn scroll(&mut self, lines: usize, frame: &Frame) {
        let shown = self.frozen.as_deref().unwrap_or(frame);
        let last = self.lines(shown).len().saturating_sub(1);
        self.first = self.first.saturating_add(lines).min(last);
    }
}

/// The one `step` places behind `current`, around the end.
fn next<T: Copy + PartialEq>(all: &[T], current: T, step: isize) -> T {
    let place = all.iter().position(|t| *t == current).unwrap_or(0);
    let place = place.checked_add_signed(step).unwrap_or(all.len() - 1);
    all.get(place % all.len()).copied().unwrap_or(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &str) {
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                c => KeyCode::Char(c),
            };
            let action = view.key(KeyEvent::from(code), &Frame::default());
            assert_eq!(action, Action::None);
        }
    }

    #[test]
    fn keys_change_the_view() {
        let mut view = View::default();
        press(&mut view, "\t3");
        assert_eq!(view.dimension, Dimension::Threads);
        press(&mut view, "\t\t\t\t");
        assert_eq!(view.dimension, Dimension::Files);
        press(&mut view, ">r");
        assert_eq!((view.sort, view.reversed), (Column::Calls, true));
        press(&mut view, "<<");
        assert_eq!(view.sort, Column::Name);
        // Keys are letters while a filter is typed.
        press(&mut view, "/qr \nc");
        assert_eq!(view.filter, "qr ");
        assert!(view.since_start && view.reversed && !view.typing);
        press(&mut view, " ");
        assert!(view.frozen.is_some());
        press(&mut view, " ");
        assert!(view.frozen.is_none());
        press(&mut view, "?q");
        assert!(!view.help);
        for (key, action) in [
            ('q', Action::Quit),
            ('w', Action::Record),
            ('o', Action::Open),
        ] {
            let key = KeyEvent::from(KeyCode::Char(key));
            assert_eq!(view.key(key, &Frame::default()), action);
        }
    }
}
