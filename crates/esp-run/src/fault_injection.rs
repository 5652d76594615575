//! Fault injection: loses, duplicates, delays, reorders or damages messages of a channel, the same ones in every run
//! with the same seed. A layer between a driver and the program that knows neither.

use crate::error::{HostCode, HostError};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::text::counted;
use std::collections::{BTreeMap, BTreeSet};

/// The faults of the messages of some channels.
#[derive(Clone, PartialEq, Debug)]
pub struct FaultPlan {
    /// A driver, for all its channels, or a channel.
    pub(crate) selector: String,
    rates: Rates,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Rates {
    /// Probabilities, in parts of `CERTAIN`.
    loss: u64,
    dup: u64,
    reorder: u64,
    flip: u64,
    /// The least and the greatest delay.
    delay_ns: (i64, i64),
    /// The period of cuts, and the duration of one.
    cut_ns: Option<(i64, i64)>,
    /// The period of stalls, and the duration of one.
    stall_ns: Option<(i64, i64)>,
    seed: u64,
}

/// The order in which a medium delivers messages whatever their delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeliveryOrder {
    /// A delayed message may be overtaken.
    Free,
    /// The messages of one connection, whose number is the first value of each, stay in order.
    PerConnection,
}

/// The probability 1.
const CERTAIN: u64 = 1 << 32;
/// The delay of a reordered message.
const REORDER_DELAY_NS: i64 = 10_000_000;
/// Messages held at once.
pub(crate) const MAX_DELAYED: usize = 1024;

const FORM: &str = "write a driver or a channel and what its messages suffer: \
                    `udp:loss=5%,dup=1%,reorder=2%,flip=1%,delay=1ms..20ms,cut=1s/10s,stall=1s/10s,seed=7`";

impl std::str::FromStr for FaultPlan {
    type Err = HostError;

    fn from_str(text: &str) -> Result<FaultPlan, HostError> {
        let wrong = |cause: String| HostError::usage(HostCode::Argument, cause).help(FORM);
        let (selector, settings) =
            text.split_once(':').ok_or_else(|| wrong(format!("`{text}` does not say what messages suffer")))?;
        let mut rates = Rates::default();
        for setting in settings.split(',') {
            let parsed = setting.split_once('=').and_then(|(name, value)| rates.set(name, value));
            parsed.ok_or_else(|| wrong(format!("`{setting}` is no fault")))?;
        }
        Ok(FaultPlan { selector: selector.to_string(), rates })
    }
}

impl FaultPlan {
    /// The first fault of the plan that a medium of this order cannot have.
    pub(crate) fn contradiction(&self, order: DeliveryOrder) -> Option<&'static str> {
        let rates = [(self.rates.loss, "loss"), (self.rates.dup, "dup"), (self.rates.reorder, "reorder")];
        match order {
            DeliveryOrder::Free => None,
            DeliveryOrder::PerConnection => rates.iter().find(|(rate, _)| *rate > 0).map(|(_, name)| *name),
        }
    }
}

impl Rates {
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "loss" => self.loss = share(value)?,
            "dup" => self.dup = share(value)?,
            "reorder" => self.reorder = share(value)?,
            "flip" => self.flip = share(value)?,
            "delay" => {
                let (min, max) = value.split_once("..").unwrap_or((value, value));
                self.delay_ns = (time_ns(min)?, time_ns(max)?);
                if self.delay_ns.0 > self.delay_ns.1 {
                    return None;
                }
            }
            "cut" => self.cut_ns = Some(periodic(value)?),
            "stall" => self.stall_ns = Some(periodic(value)?),
            "seed" => self.seed = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

/// `1s/10s`: the period, and the duration at its end.
fn periodic(text: &str) -> Option<(i64, i64)> {
    let (length, period) = text.split_once('/')?;
    let (length, period) = (time_ns(length)?, time_ns(period)?);
    (0 < period && length <= period).then_some((period, length))
}

/// Whether a time lies in the last part of its period.
fn is_within(times_ns: Option<(i64, i64)>, now_ns: i64) -> bool {
    times_ns.is_some_and(|(period, length)| now_ns % period >= period - length)
}

/// `5%` or `0.5%`, in parts of `CERTAIN`.
fn share(text: &str) -> Option<u64> {
    let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| (percent / 100.0 * CERTAIN as f64) as u64)
}

/// `10ms`, in nanoseconds.
pub(crate) fn time_ns(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let amount: i64 = text[..digits].parse().ok()?;
    let unit_ns: i64 = match &text[digits..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    amount.checked_mul(unit_ns)
}

/// The faulty medium of one channel, or in a simulation of one direction of a link.
pub struct FaultInjector {
    rates: Rates,
    random: u64,
    order: DeliveryOrder,
    /// By connection, if their messages stay in order: when the last message arrives.
    last_due_ns: BTreeMap<i128, i64>,
    /// Connections that the program has closed and the driver has not: their messages are dropped.
    closing: BTreeSet<i128>,
    /// By the time they arrive, and among equals by their order.
    held: BTreeMap<(i64, u64), Vec<Datum>>,
    number: u64,
    /// The one on offer to the program.
    pub(crate) offered: Option<Vec<Datum>>,
    /// Whether its input is closed.
    pub(crate) closed: bool,
    counts: FaultCounts,
}

/// The faults that a [`FaultInjector`] has injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    /// Lost messages, including those of a cut.
    pub lost: u64,
    /// Duplicated messages.
    pub doubled: u64,
    /// Delayed messages.
    pub delayed: u64,
    /// Messages with an inverted bit.
    pub damaged: u64,
    /// Connections that were cut.
    pub cut: u64,
}

impl FaultInjector {
    /// The medium of a channel. Different channels with one seed have different faults; the selector is not compared.
    pub fn new(faults: &FaultPlan, channel: &str) -> FaultInjector {
        FaultInjector::with_order(faults, channel, DeliveryOrder::Free)
    }

    /// The medium of a channel whose driver keeps this order.
    pub(crate) fn with_order(faults: &FaultPlan, channel: &str, order: DeliveryOrder) -> FaultInjector {
        let salt = channel
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        FaultInjector {
            rates: faults.rates.clone(),
            random: faults.rates.seed ^ salt,
            order,
            last_due_ns: BTreeMap::new(),
            closing: BTreeSet::new(),
            held: BTreeMap::new(),
            number: 0,
            offered: None,
            closed: false,
            counts: FaultCounts::default(),
        }
    }

    /// A medium that only keeps the order.
    pub(crate) fn without_faults(order: DeliveryOrder) -> FaultInjector {
        FaultInjector::with_order(&FaultPlan { selector: String::new(), rates: Rates::default() }, "", order)
    }

    /// A message enters; times are in nanoseconds since any moment.
    pub fn enter(&mut self, mut message: Vec<Datum>, now_ns: i64) {
        // Always the same number of draws, so that an additional fault does not shift all the others.
        let (loss, dup, reorder, flip) = (self.draw(), self.draw(), self.draw(), self.draw());
        let (first, second, place) = (self.delay_ns(), self.delay_ns(), self.draw());
        let cut = self.order == DeliveryOrder::Free && is_within(self.rates.cut_ns, now_ns);
        if cut || loss < self.rates.loss {
            self.counts.lost += 1;
            return;
        }
        if flip < self.rates.flip && damage(message.iter_mut(), place) {
            self.counts.damaged += 1;
        }
        // A stalled message starts at the end of the stall.
        let start_ns = match self.rates.stall_ns {
            Some((period, _)) if is_within(self.rates.stall_ns, now_ns) => {
                now_ns.saturating_add(period - now_ns % period)
            }
            Some(_) | None => now_ns,
        };
        let mut due_ns = start_ns.saturating_add(first);
        if reorder < self.rates.reorder {
            due_ns = due_ns.saturating_add(REORDER_DELAY_NS);
        }
        if due_ns > now_ns {
            self.counts.delayed += 1;
        }
        if dup < self.rates.dup {
            self.counts.doubled += 1;
            self.hold(message.clone(), start_ns.saturating_add(second));
        }
        if self.order == DeliveryOrder::PerConnection
            && let Some(connection) = connection_of(&message)
        {
            let last = self.last_due_ns.get(&connection).copied().unwrap_or(i64::MIN);
            due_ns = due_ns.max(last);
            self.last_due_ns.retain(|_, due| *due > now_ns);
            self.last_due_ns.insert(connection, due_ns);
        }
        self.hold(message, due_ns);
    }

    fn hold(&mut self, message: Vec<Datum>, due_ns: i64) {
        self.number += 1;
        self.held.insert((due_ns, self.number), message);
    }

    /// Whether a connection with messages now is cut: its medium has `cut`, and keeps the order of connections.
    pub(crate) fn cuts(&self, now_ns: i64) -> bool {
        self.order == DeliveryOrder::PerConnection && is_within(self.rates.cut_ns, now_ns)
    }

    /// A connection was cut.
    pub(crate) fn count_cut(&mut self) {
        self.counts.cut += 1;
    }

    /// The program closes the connection of a message: what is in transit on it is dropped, and what comes until the
    /// driver has closed it, too.
    pub(crate) fn begin_close(&mut self, request: &[Datum]) {
        let connection = connection_of(request);
        self.held.retain(|_, message| connection_of(message) != connection);
        if self.offered.as_deref().is_some_and(|message| connection_of(message) == connection) {
            self.offered = None;
        }
        self.closing.extend(connection);
    }

    /// The driver has closed the connection of a message.
    pub(crate) fn end_close(&mut self, request: &[Datum]) {
        if let Some(connection) = connection_of(request) {
            self.closing.remove(&connection);
        }
    }

    /// Whether the program has closed the connection of a message.
    pub(crate) fn is_closing(&self, message: &[Datum]) -> bool {
        connection_of(message).is_some_and(|connection| self.closing.contains(&connection))
    }

    /// The next message that has arrived.
    pub fn leave(&mut self, now_ns: i64) -> Option<Vec<Datum>> {
        let first = self.held.first_entry()?;
        (first.key().0 <= now_ns).then(|| first.remove())
    }

    /// When the next message arrives.
    pub fn due_ns(&self) -> Option<i64> {
        self.held.first_key_value().map(|((due_ns, _), _)| *due_ns)
    }

    /// The number of messages in transit.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// The numbers of injected faults.
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// The counts as text, if there are any faults.
    pub fn note(&self, channel: &str) -> Option<String> {
        let FaultCounts { lost, doubled, delayed, damaged, cut } = self.counts;
        let counts = [(lost, "lost"), (doubled, "doubled"), (delayed, "delayed"), (damaged, "damaged")];
        let parts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        let mut counts: Vec<String> =
            (!parts.is_empty()).then(|| format!("{} messages", parts.join(", "))).into_iter().collect();
        counts.extend((cut > 0).then(|| counted(cut, "cut connection")));
        (!counts.is_empty()).then(|| format!("faults on channel `{channel}`: {}", counts.join(", ")))
    }

    fn delay_ns(&mut self) -> i64 {
        let (min, max) = self.rates.delay_ns;
        let spread = (max - min) as u64 + 1;
        min + ((u128::from(self.next()) * u128::from(spread)) >> 64) as i64
    }

    /// A number below `CERTAIN`.
    fn draw(&mut self) -> u64 {
        self.next() >> 32
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The number or instance that a message begins with.
fn connection_of(message: &[Datum]) -> Option<i128> {
    match message.first()? {
        Datum::Int(number) => Some(*number),
        Datum::Pid(instance) => Some(i128::from(*instance)),
        Datum::Record(fields) => connection_of(fields),
        Datum::Bytes(_) | Datum::Bool(_) | Datum::Array(_) | Datum::Union(..) => None,
    }
}

/// Inverts one bit of the first bytes of a message; whether it has any.
fn damage<'d>(mut data: impl Iterator<Item = &'d mut Datum>, place: u64) -> bool {
    data.any(|datum| match datum {
        Datum::Bytes(bytes) if !bytes.is_empty() => {
            let bit = place % (bytes.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            true
        }
        Datum::Record(fields) | Datum::Array(fields) => {
            damage(&mut fields.iter_mut() as &mut dyn Iterator<Item = _>, place)
        }
        Datum::Union(_, Some(payload)) => {
            damage(&mut std::iter::once(&mut **payload) as &mut dyn Iterator<Item = _>, place)
        }
        Datum::Bytes(_) | Datum::Int(_) | Datum::Bool(_) | Datum::Pid(_) | Datum::Union(_, None) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{FaultInjector, FaultPlan};
    use quaject_esp_exec::datum::Datum;

    /// The messages that leave the medium, with their times, if messages 0..count enter one per millisecond.
    fn passed(faults: &str, count: i128) -> Vec<(i64, i128)> {
        let faults: FaultPlan = faults.parse().expect("a fault");
        let mut medium = FaultInjector::new(&faults, "c");
        let mut passed = Vec::new();
        for time in 0..i64::try_from(count).expect("few") + 100 {
            let now_ns = time * 1_000_000;
            if i128::from(time) < count {
                medium.enter(vec![Datum::Int(i128::from(time))], now_ns);
            }
            while let Some(message) = medium.leave(now_ns) {
                let [Datum::Int(number)] = message.as_slice() else { panic!("not what entered") };
                passed.push((time, *number));
            }
        }
        assert_eq!(medium.len(), 0);
        passed
    }

    #[test]
    fn without_faults_all_messages_pass_at_once_and_in_order() {
        assert_eq!(passed("udp:seed=1", 3), [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn the_shares_are_those_asked_for() {
        let count = passed("udp:loss=10%,seed=3", 10_000).len();
        assert!((8_800..9_200).contains(&count), "{count}");
        let count = passed("udp:dup=10%", 10_000).len();
        assert!((10_800..11_200).contains(&count), "{count}");
        assert_eq!(passed("udp:loss=100%", 10), []);
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let run = |seed| passed(&format!("udp:loss=30%,dup=10%,reorder=10%,delay=1ms..5ms,seed={seed}"), 500);
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn overtaken_messages_arrive_later_and_delays_are_kept() {
        let order = passed("udp:reorder=20%", 200);
        assert!(order.is_sorted_by_key(|(time, _)| *time) && !order.is_sorted_by_key(|(_, number)| *number));
        assert!(
            passed("udp:delay=3ms..7ms", 200).iter().all(|(time, number)| (3..=7).contains(&(time - *number as i64)))
        );
    }

    #[test]
    fn a_cut_loses_all_there_is_in_its_time() {
        let expected: Vec<(i64, i128)> = (0..20).filter(|time| time % 10 < 7).map(|time| (time, time.into())).collect();
        assert_eq!(passed("udp:cut=3ms/10ms", 20), expected);
    }

    #[test]
    fn a_stall_delays_all_there_is_in_its_time() {
        let due = |time: i64| if time % 10 < 7 { time } else { time - time % 10 + 10 };
        let expected: Vec<(i64, i128)> = (0..20).map(|time| (due(time), time.into())).collect();
        assert_eq!(passed("udp:stall=3ms/10ms", 20), expected);
    }

    #[test]
    fn one_bit_of_the_bytes_is_turned() {
        let faults: FaultPlan = "c:flip=100%".parse().expect("a fault");
        let mut medium = FaultInjector::new(&faults, "c");
        medium.enter(vec![Datum::Int(1), Datum::Record(vec![Datum::Bytes(vec![0; 8])])], 0);
        let message = medium.leave(0).expect("it passes");
        let [Datum::Int(1), Datum::Record(fields)] = message.as_slice() else { panic!("{message:?}") };
        let [Datum::Bytes(bytes)] = fields.as_slice() else { panic!("{fields:?}") };
        assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }

    #[test]
    fn what_is_no_fault_is_refused() {
        for text in [
            "udp",
            "udp:",
            "udp:loss",
            "udp:loss=5",
            "udp:loss=101%",
            "udp:delay=5ms..1ms",
            "udp:cut=2s/1s",
            "udp:stall=1s",
            "udp:x=1",
        ] {
            let error = text.parse::<FaultPlan>().expect_err(text);
            assert!(error.help.is_some(), "{text}");
        }
    }
}
