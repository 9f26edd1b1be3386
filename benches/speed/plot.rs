//! Curves as SVG: a white ground, so that they read the same in light and dark readers, and lines that differ by more
//! than colour.

use std::fmt::Write;

use crate::table::number;

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 88.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 64.0;
const TEXT: &str = "#24292f";
const FAINT: &str = "#d8dee4";
/// Colour and dashes of each curve in turn.
const STYLES: [(&str, &str); 4] =
    [("#0b62b8", "none"), ("#c8442f", "9 5"), ("#5f6b76", "2 5"), ("#2e7d4f", "14 4 2 4")];

/// A curve.
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Some curves over one axis. The vertical axis begins at zero.
pub struct Plot {
    pub title: String,
    /// Title and unit of the horizontal axis.
    pub across: String,
    /// Title and unit of the vertical axis.
    pub up: String,
    /// Whether the horizontal axis counts in powers of ten.
    pub logarithmic: bool,
    pub series: Vec<Series>,
}

impl Plot {
    /// The drawing.
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\" font-size=\"14\" \
             fill=\"{TEXT}\" role=\"img\">\n<title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"30\" font-size=\"18\" font-weight=\"600\">{title}</text>\n",
            title = escaped(&self.title)
        );
        let scales = Scales::of(self);
        scales.draw_grid(self, &mut svg);
        for (series, style) in self.series.iter().zip(STYLES.iter().cycle()) {
            draw_curve(series, *style, &scales, &mut svg);
        }
        self.draw_legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_legend(&self, svg: &mut String) {
        let mut x = LEFT;
        for (series, (colour, dashes)) in self.series.iter().zip(STYLES.iter().cycle()) {
            let (end, text) = (x + 34.0, x + 42.0);
            line(
                svg,
                (x, 55.0),
                (end, 55.0),
                &format!("stroke=\"{colour}\" stroke-width=\"2.5\" stroke-dasharray=\"{dashes}\""),
            );
            let _ = writeln!(svg, "<text x=\"{text:.0}\" y=\"60\">{}</text>", escaped(&series.name));
            // Letters are about half as wide as they are high.
            let letters = u32::try_from(series.name.chars().count()).unwrap_or(u32::MAX);
            x = text + f64::from(letters) * 7.4 + 26.0;
        }
    }
}

/// From values to places in the drawing.
struct Scales {
    from: f64,
    to: f64,
    most: f64,
    logarithmic: bool,
}

impl Scales {
    fn of(plot: &Plot) -> Self {
        let points = || plot.series.iter().flat_map(|series| &series.points);
        let across = |value: f64| if plot.logarithmic { value.log10() } else { value };
        let from = points().map(|point| across(point.0)).fold(f64::INFINITY, f64::min);
        let to = points().map(|point| across(point.0)).fold(f64::NEG_INFINITY, f64::max);
        let most = points().map(|point| point.1).fold(1.0, f64::max) * 1.08;
        let from = if plot.logarithmic { from } else { from.min(0.0) };
        Self { from, to: to.max(from + f64::EPSILON), most, logarithmic: plot.logarithmic }
    }

    fn x(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.log10() } else { value };
        LEFT + (value - self.from) / (self.to - self.from) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.most * (HEIGHT - TOP - BOTTOM)
    }

    fn draw_grid(&self, plot: &Plot, svg: &mut String) {
        let (low, high) = (HEIGHT - BOTTOM, TOP);
        for value in steps(0.0, self.most) {
            let y = self.y(value);
            line(svg, (LEFT, y), (WIDTH - RIGHT, y), &format!("stroke=\"{FAINT}\""));
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 10.0,
                y + 5.0,
                number(value)
            );
        }
        for value in self.marks_across(plot) {
            let x = self.x(value);
            line(svg, (x, low), (x, high), &format!("stroke=\"{FAINT}\""));
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                low + 22.0,
                number(value)
            );
        }
        line(svg, (LEFT, low), (WIDTH - RIGHT, low), &format!("stroke=\"{TEXT}\" stroke-width=\"1.5\""));
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 14.0,
            escaped(&plot.across)
        );
        let _ = writeln!(
            svg,
            "<text transform=\"translate(20 {:.0}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(low, high),
            escaped(&plot.up)
        );
    }

    /// Round numbers; on a scale of powers of ten the values themselves, of which there are few.
    fn marks_across(&self, plot: &Plot) -> Vec<f64> {
        if self.logarithmic {
            plot.series.first().map(|series| series.points.iter().map(|point| point.0).collect()).unwrap_or_default()
        } else {
            steps(self.from, self.to)
        }
    }
}

/// Round numbers from one to the other, about six of them.
fn steps(from: f64, to: f64) -> Vec<f64> {
    let rough = (to - from) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(power);
    let mut values = Vec::new();
    let mut value = (from / step).ceil() * step;
    while value <= to {
        values.push(value);
        value += step;
    }
    values
}

fn draw_curve(series: &Series, (colour, dashes): (&str, &str), scales: &Scales, svg: &mut String) {
    let places: Vec<(f64, f64)> = series.points.iter().map(|(x, y)| (scales.x(*x), scales.y(*y))).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\" \
         stroke-dasharray=\"{dashes}\"/>",
        path.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
        from.0, from.1, to.0, to.1
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
