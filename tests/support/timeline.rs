//! Draws what happened during one call: a lane for each participant, a bar for each request.

use std::{fmt::Write, time::Duration};

/// What took time: a lane, what to write on it, from when to when.
pub struct Bar {
    pub lane: usize,
    pub label: String,
    pub from: Duration,
    pub to: Duration,
    pub colour: &'static str,
}

const LEFT: f64 = 150.0;
const WIDTH: f64 = 820.0;
const LANE: f64 = 46.0;
const TOP: f64 = 58.0;

/// The picture. `marks` are vertical lines; the last one is where the time axis ends.
pub fn draw(title: &str, lanes: &[&str], bars: &[Bar], marks: &[(Duration, &str)]) -> String {
    let end = marks.last().map_or(Duration::from_secs(1), |(at, _)| *at);
    let x = |at: Duration| LEFT + at.as_secs_f64() / end.as_secs_f64() * WIDTH;
    let y = |lane: usize| TOP + LANE * f64::from(u32::try_from(lane).unwrap());
    let bottom = y(lanes.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 {:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"10\" y=\"20\" font-size=\"15\">{title}</text>\n",
        bottom + 30.0
    );
    for (lane, name) in lanes.iter().enumerate() {
        let _ = writeln!(svg, "<text x=\"10\" y=\"{:.0}\">{name}</text>", y(lane) + 25.0);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{1:.0}\" y2=\"{1:.0}\" stroke=\"#ddd\"/>",
            LEFT + WIDTH,
            y(lane) + LANE
        );
    }
    for bar in bars {
        let (left, width) = (x(bar.from), (x(bar.to) - x(bar.from)).max(3.0));
        let top = y(bar.lane) + 10.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"22\" fill=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.0}\" font-size=\"10\">{}</text>",
            bar.colour,
            left + 4.0,
            top + 33.0,
            bar.label
        );
    }
    for (row, (at, label)) in (0..).zip(marks) {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"46\" y2=\"{bottom:.0}\" stroke=\"#a00\" stroke-dasharray=\"4 3\"/>\n\
             <text x=\"{0:.1}\" y=\"{1:.0}\" text-anchor=\"end\" fill=\"#a00\" font-size=\"10\">{label}</text>",
            x(*at),
            28.0 + 12.0 * f64::from(row % 2)
        );
    }
    for second in 0..=end.as_secs() {
        let at = Duration::from_secs(second);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.0}\" fill=\"#777\" font-size=\"10\">{second} s</text>",
            x(at),
            bottom + 16.0
        );
    }
    svg + "</svg>\n"
}
