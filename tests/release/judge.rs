// judge FILE GOT: a line `ID MODEL WORST FLAGS..` for every `tensor got` of the text file GOT; rope FILE LAYOUT: RoPE of this program.
mod vectors;
use vectors::{load, named, worst, Case, File};

fn rope(c: &Case, layout: &str) -> Vec<f64> {
    let (dim, base): (usize, f64) = (c.param["dim"].parse().unwrap(), c.param["base"].parse().unwrap());
    let (shape, x) = &c.tensor["x"];
    let (width, mut y) = (*shape.last().unwrap(), x.clone());
    for row in 0..y.len() / width {
        for t in 0..dim / 2 {
            let angle = c.tensor["positions"].1[row] * base.powf(-2.0 * t as f64 / dim as f64);
            let first = row * width + if layout == "half" { t } else { 2 * t };
            let second = first + if layout == "half" { dim / 2 } else { 1 };
            let (a, b) = (y[first], y[second]);
            y[first] = a * angle.cos() - b * angle.sin();
            y[second] = a * angle.sin() + b * angle.cos();
        }
    }
    y
}

fn say(file: &File, c: &Case, got: &[f64]) {
    for model in c.word["models"].split(' ') {
        let mut words = vec![c.id.clone(), model.to_string(), worst(file, c, got, model).to_string()];
        words.extend(named(c, got));
        println!("{}", words.join(" "));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = load(&arguments[2]);
    if arguments[1] == "rope" {
        for c in file.cases.iter().filter(|c| c.id == "rope/half/d8-b1e4/tiny") { say(&file, c, &rope(c, &arguments[3])); }
        return;
    }
    for result in load(&arguments[3]).cases {
        let c = file.cases.iter().find(|c| c.id == result.id).unwrap();
        say(&file, c, &result.tensor["got"].1);
    }
}
