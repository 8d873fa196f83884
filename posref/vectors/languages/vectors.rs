// Loader and comparator of the golden vectors in Rust, no crate; CC0 1.0. `worst` at most 1 passes; `named` says which mistake.
#![allow(dead_code)]
use std::collections::BTreeMap;

pub type Map<T> = BTreeMap<String, T>;
pub type Tensor = (Vec<usize>, Vec<f64>);
#[derive(Default)]
pub struct Case {
    pub id: String,
    pub word: Map<String>, // op, gauge, compare, status, models, comment
    pub param: Map<String>,
    pub fingerprint: Map<Vec<f64>>,
    pub growth: Map<Vec<f64>>, // of a model, as rms
    pub rms: Map<Vec<f64>>,
    pub tensor: Map<Tensor>,
}
#[derive(Default)]
pub struct File { pub model: Map<Vec<f64>>, pub flag: Map<String>, pub cases: Vec<Case> }

pub fn load(path: &str) -> File {
    let mut file = File::default();
    let numbers = |words: &[&str]| words.iter().map(|x| x.parse().unwrap()).collect::<Vec<f64>>();
    for line in std::fs::read_to_string(path).expect(path).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, rest) = (words.get(1).unwrap_or(&"").to_string(), words.get(2..).unwrap_or(&[]));
        match (words[0], file.cases.last_mut()) {
            ("case", _) => file.cases.push(Case { id: name, ..Case::default() }),
            ("schema", _) => assert!(name == "posref-vectors-3", "{}: unknown schema {}", path, name),
            ("model", _) => { file.model.insert(name, numbers(rest)); }
            ("flag", _) => { file.flag.insert(name, rest.join(" ")); }
            ("param", Some(case)) => { case.param.insert(name, rest.join(" ")); }
            ("fingerprint", Some(case)) => { case.fingerprint.insert(name, numbers(rest)); }
            ("growth", Some(case)) => { case.growth.insert(name, numbers(rest)); }
            ("rms", Some(case)) => { case.rms.insert(name, numbers(rest)); }
            ("tensor", Some(case)) => {
                let (sizes, data) = rest[1..].split_at(rest[0].parse().unwrap());
                case.tensor.insert(name, (sizes.iter().map(|n| n.parse().unwrap()).collect(), numbers(data)));
            }
            (word, Some(case)) => { case.word.insert(word.to_string(), words[1..].join(" ")); }
            _ => {}
        }
    }
    file
}

fn cond(case: &Case, name: &str, i: usize, absent: f64) -> f64 {
    case.tensor.get(name).map_or(absent, |tensor| tensor.1[i])
}

fn row_length(case: &Case) -> Option<usize> {
    if case.word["gauge"] == "row_constant" { case.tensor["expected"].0.last().copied() } else { None }
}

fn differences(case: &Case, got: &[f64]) -> Option<Vec<f64>> {
    let expected = &case.tensor["expected"].1; // got - expected; 0 where it is ignored
    let one = |i: usize| if cond(case, "ignore", i, 0.0) != 0.0 { 0.0 } else { got[i] - expected[i] };
    let d: Vec<f64> = if got.len() == expected.len() { (0..got.len()).map(one).collect() } else { return None };
    d.iter().all(|x| x.is_finite()).then_some(d)
}

pub fn worst(file: &File, case: &Case, got: &[f64], model: &str) -> f64 {
    let (m, expected) = (&file.model[model], &case.tensor["expected"].1);
    let Some(d) = differences(case, got) else { return f64::INFINITY };
    let phase = m[0] * case.growth.get(model).map_or(1.0, |growth| growth[0]);
    let allowed = |i: usize| match case.word["compare"].as_str() {
        "equal" => 0.0,
        _ => m[3] + 1.03125 * (phase * cond(case, "cond.phase", i, 0.0) + m[1] * cond(case, "cond.amp", i, 0.0)
            + m[2] * cond(case, "cond.out", i, expected[i].abs())),
    };
    let ratio = |error: f64, bound: f64| if error == 0.0 { 0.0 } else { error.abs() / bound };
    let (mut most, mut squares, mut count) = (0.0f64, 0.0, 0.0);
    for i in (0..d.len()).filter(|&i| cond(case, "ignore", i, 0.0) == 0.0) {
        match row_length(case) {
            None => {
                let own = ratio(d[i], allowed(i));
                (most, squares, count) = (most.max(own), squares + own * own, count + 1.0);
            }
            Some(row) => for j in (i / row * row..i).filter(|&j| cond(case, "ignore", j, 0.0) == 0.0) {
                most = most.max(ratio(d[i] - d[j], allowed(i) + allowed(j)));
            },
        }
    }
    case.rms.get(model).filter(|_| count > 0.0).map_or(most, |r| most.max((squares / count).sqrt() / r[0]))
}

pub fn named(case: &Case, got: &[f64]) -> Vec<String> {
    let Some(d) = differences(case, got) else { return vec![] };
    let own = |i: usize| match row_length(case) {
        Some(row) if cond(case, "ignore", i, 0.0) == 0.0 => d[i] - d[i / row * row],
        _ => d[i],
    };
    let weight = |i: usize, tag: usize| (((7 * i * i + 31 * i + 17 * tag) % 251) as f64 - 125.0) / 64.0;
    let sums = [1, 2, 4, 6].map(|tag| (0..d.len()).map(|i| weight(i, tag) * own(i)).sum::<f64>());
    let whole: f64 = sums.iter().map(|x| x.abs()).sum();
    let rest = |known: &Vec<f64>| sums.iter().zip(known).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let fits = |known: &Vec<f64>| known.len() == 4 && rest(known) < whole / 64.0;
    case.fingerprint.iter().filter(|(_, known)| fits(known)).map(|(flag, _)| flag.clone()).collect()
}
