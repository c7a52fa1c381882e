//! Draws panels as SVG.

#![allow(clippy::cast_precision_loss, reason = "minutes and pixels")]

use std::fmt::Write as _;

use action_group::dev::panels::{Curve, Panel};
use serde_json::Value;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 190.0;
const PLOT: (f64, f64, f64, f64) = (36.0, 28.0, 252.0, 96.0); // left, top, width, height
const COLOURS: [&str; 13] = [
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#17becf", "#bcbd22",
    "#003f5c", "#a05195", "#00876c",
];

/// The picture: a row for each tool.
pub fn draw(panels: &[Panel], minutes: &[Vec<Value>]) -> String {
    let rows: Vec<_> = panels.chunk_by(|a, b| a.tool == b.tool).collect();
    let height = rows.iter().fold(10.0, |height, _| height + HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"9\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#f4f4f4\"/>\n",
        WIDTH * 4.0 + 10.0
    );
    let mut y = 8.0;
    for row in rows {
        let mut x = 8.0;
        for panel in row {
            let _ = writeln!(svg, "<g transform=\"translate({x:.0} {y:.0})\">{}</g>", draw_panel(panel, minutes));
            x += WIDTH;
        }
        y += HEIGHT;
    }
    svg + "</svg>\n"
}

fn draw_panel(panel: &Panel, minutes: &[Vec<Value>]) -> String {
    let curves: Vec<_> = panel.curves.iter().map(|curve| (curve, points(panel.tool, curve, minutes))).collect();
    let top = |right: bool| {
        let own = curves.iter().filter(|(curve, _)| curve.is_on_the_right() == right);
        own.flat_map(|(_, points)| points.iter().flatten()).fold(1.0_f64, |top, value| top.max(*value))
    };
    let (left, up, width, height) = PLOT;
    let bottom = up + height;
    let mut svg = format!(
        "<rect width=\"{:.0}\" height=\"{:.0}\" fill=\"#fff\" stroke=\"#ddd\"/>\
         <text x=\"8\" y=\"16\" font-size=\"11\">{}: {}</text>\
         <path d=\"M{left} {up}V{bottom}H{:.0}\" fill=\"none\" stroke=\"#999\"/>\
         <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"end\">{:.0}</text>\
         <text x=\"{x:.0}\" y=\"{bottom}\" text-anchor=\"end\">0</text>",
        WIDTH - 8.0,
        HEIGHT - 8.0,
        panel.tool,
        panel.title,
        left + width,
        up + 6.0,
        top(false),
        x = left - 3.0,
    );
    if curves.iter().any(|(curve, _)| curve.is_on_the_right()) {
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">right: {:.0}</text>",
            left + width,
            up - 2.0,
            top(true)
        );
    }
    let step = width / minutes.len().max(2) as f64;
    for (number, ((curve, points), colour)) in curves.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let at = |index: usize, value: f64| {
            format!("{:.1} {:.1}", left + step * index as f64, bottom - value / top(curve.is_on_the_right()) * height)
        };
        let mut path = String::new();
        let mut joined = false;
        for (index, value) in points.iter().enumerate() {
            if let Some(value) = value {
                let point = at(index, *value);
                // A value without neighbours is a dot.
                let _ = if joined { write!(path, "L{point}") } else { write!(path, "M{point}h0.1") };
            }
            joined = value.is_some();
        }
        let (x, y) = (8 + (number % 3) * 96, 138 + (number / 3) * 11);
        let _ = write!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-linecap=\"square\"/>\
             <text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{}</text>",
            curve.label()
        );
    }
    svg
}

/// A curve's value in each minute; none where there is nothing to count.
fn points(tool: &str, curve: &Curve, minutes: &[Vec<Value>]) -> Vec<Option<f64>> {
    let in_minute = |lines: &Vec<Value>| {
        let own = || lines.iter().filter(|line| line["Tool"] == tool);
        let values = |name: &str| own().filter_map(|line| line[name].as_f64()).collect::<Vec<_>>();
        match curve {
            Curve::Metric(name, statistic) => statistic_of(values(name), statistic),
            Curve::PercentOfCalls(name) => {
                let calls: f64 = values("Calls").iter().sum();
                (calls > 0.0).then(|| 100.0 * values(name).iter().sum::<f64>() / calls)
            }
        }
    };
    minutes.iter().map(in_minute).collect()
}

/// `Sum`, or a percentile such as `p99`.
fn statistic_of(mut values: Vec<f64>, statistic: &str) -> Option<f64> {
    let Some(percent) = statistic.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok()) else {
        return (!values.is_empty()).then(|| values.iter().sum());
    };
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = (last as f64 * percent / 100.0).round() as usize;
    values.get(index).copied()
}
