"""Faults of accountants, bounds and certificates."""

from mutation import Fault, both, edit, slip

CLOSED, PUBLISHED = (
    "epsilon_is_never_below_the_closed_form",
    "epsilon_is_that_of_published_settings",
)
BINOMIAL, FOLLOWS = "bounds_are_those_of_the_binomial", "certificate_follows_from_the_ledger"
PLANNED = "a_ledger_holds_what_its_settings_ask_for"
GROUPS, INFINITE = "groups_cost_what_they_shift", "certificate_is_infinite_where_nothing_holds"

ADVICE = "advice_rests_on_these_policies"
ONE_COPY, ROUNDED = "one_copy_alone_costs_what_comes_back", "released_bounds_are_no_smaller"

FAULTS = [
    slip(
        "add_or_remove for replace_one",
        "The accountant prices one record more or less and calls it the price of replacing one.",
        CLOSED,
        "confide.dp.accounting.curves:pair_of",
        ('relation == "replace_one"', "False"),
    ),
    slip(
        "optimistic grid",
        "Privacy losses are rounded down to the grid.",
        CLOSED,
        "confide.dp.accounting.pld:spread",
        ("np.append(upper - moved, 0.0) + np.append(0.0, moved)", "np.append(upper, 0.0)"),
    ),
    slip(
        "one hop for two",
        "Replacing is one removal and one addition; the Renyi accountant prices only one of them.",
        CLOSED,
        "confide.dp.accounting.price:rdp",
        ('2 if relation == "replace_one" else 1', "1"),
    ),
    slip(
        "lines of a ledger not added up",
        "Of updates that stand in several lines, only the last line is priced.",
        CLOSED,
        "confide.dp.accounting.price:mechanisms_of",
        ("counts[key] += release.count", "counts[key] = release.count"),
    ),
    slip(
        "amplification squared",
        "Moments of a sampled update are taken at the square of its rate.",
        PUBLISHED,
        "confide.dp.accounting.curves:integer_moment",
        ("j * math.log(rate)", "2 * j * math.log(rate)"),
    ),
    slip(
        "delta divided twice",
        "The mechanism is read at delta / gamma^2.",
        BINOMIAL,
        "confide.certify.confidentiality:spend",
        ("left / gamma", "left / gamma**2"),
    ),
    slip(
        "an estimate for a bound",
        "The share seen in a sample stands for the upper bound of the share.",
        BINOMIAL,
        "confide.dp.accounting.bounds:clopper_pearson",
        ("float(betaincinv(events + 1, trials - events, confidence))", "events / trials"),
    ),
    slip(
        "audit off by one",
        "The p-value of an audit is that of one more right guess: it refutes what is true.",
        BINOMIAL,
        "confide.dp.accounting.audit_bounds:p_value",
        (
            "betainc(correct, guesses - correct + 1, math.exp(right))",
            "betainc(correct + 1, max(1, guesses - correct), math.exp(right))",
        ),
    ),
    slip(
        "audit without its delta",
        "The p-value of an audit charges delta once instead of for every coin.",
        BINOMIAL,
        "confide.dp.accounting.audit_bounds:p_value",
        ("2 * coins", "2"),
    ),
    slip(
        "group of one",
        "A secret in many points is priced as if it stood in one.",
        FOLLOWS,
        "confide.certify.claims:group_claims",
        ("group(missed, facts.delta, size)", "group(missed, facts.delta, 1)"),
    ),
    slip(
        "group shifts by its square root",
        "Without sampling, a group of k is taken to shift the sum by the square root of k.",
        GROUPS,
        "confide.dp.accounting.curves:shift",
        (
            'group * (2.0 if relation == "replace_one" else 1.0)',
            'group**0.5 * (2.0 if relation == "replace_one" else 1.0)',
        ),
    ),
    slip(
        "starts on other terms added up",
        "What was trained on other text, by other policies or for another unit is priced as if it "
        "were the same.",
        INFINITE,
        "confide.certify.certificate:unaccounted",
        (
            "reasons += [reason for start in starts for reason in on_other_terms(start, ran)]",
            "",
        ),
    ),
    slip(
        "recorded noise of a start forgotten",
        "That an ancestor's noise can be drawn again is not said of its descendants.",
        INFINITE,
        "confide.certify.certificate:certificate",
        ("any((ledger.seeded() for ledger in history))", "bool(ran.seeded())"),
    ),
    slip(
        "authors and copies",
        "Deduplication lets one author's text decide what another's holds, and each is still "
        "priced alone.",
        INFINITE,
        "confide.certify.certificate:unaccounted",
        ('line["authors"] is not None', "False"),
    ),
    slip(
        "weights of another training",
        "The certificate does not compare the weights with those that its ledger ends with.",
        INFINITE,
        "confide.certify.certificate:_started",
        ('[line["weights"] for line in ran.events("end")] != [weights]', "False"),
    ),
    slip(
        "public because it says so",
        "A start counts as public text though its own ledger says otherwise.",
        INFINITE,
        "confide.certify.certificate:ancestry",
        ('start["public"] is not all((saw_public_text(ledger) for ledger in before))', "False"),
    ),
    slip(
        "number of updates not compared",
        "Verification looks at the kinds of updates, not at how many there are.",
        PLANNED,
        "confide.train.planning:check_ledger",
        (
            "counted(releases) != expected",
            "{r.step for r in releases} != {r.step for r in expected}",
        ),
    ),
    slip(
        "too much noise believed",
        "A ledger may claim more noise than its settings ask for, and so a smaller epsilon than "
        "they do.",
        PLANNED,
        "confide.train.planning:meets",
        (
            "spent >= target * (1 - 2 * RELATIVE) or noise_multiplier <= 2 * SMALLEST",
            "True",
        ),
    ),
    slip(
        "misses of other domains",
        "A model of some domains is certified by what policies miss in all of them together.",
        PLANNED,
        "confide.train.planning:enumerate_steps",
        ("any(map(relies_on_policies, kinds))", "False"),
    ),
    slip(
        "advice by another policy",
        "`recommend` takes what was measured of a policy that params.yaml no longer has.",
        ADVICE,
        "confide.commands.recommend:check_terms",
        ("measured_terms.get(key) != value", "key not in measured_terms"),
    ),
    slip(
        "warm start ignored",
        "What the starting weights have cost is not in the certificate.",
        FOLLOWS,
        "confide.certify.certificate:certificate",
        ("[*before, *ran.releases()]", "ran.releases()"),
    ),
    slip(
        "simulated miss rate claimed",
        "The certificate takes the miss rate that was asked for, not the one that was measured.",
        FOLLOWS,
        "confide.certify.certificate:facts_of",
        ('missed["gamma"]', "spec.miss_rate"),
    ),
    slip(
        "no miss rate is none missed",
        "Where no secret is known, the policy is taken to miss none.",
        INFINITE,
        "confide.certify.certificate:facts_of",
        ('missed["gamma"]', 'missed["gamma"] or 0.0'),
    ),
    slip(
        "exact updates are free",
        "Updates without noise on private text cost nothing.",
        INFINITE,
        "confide.dp.accounting.price:price",
        ('not release.noisy and release.step.pool != "public"', "False"),
    ),
    slip(
        "public tokens are no secrets",
        "Exact updates on the tokens that the policy calls public cost nothing, whatever it "
        "misses.",
        INFINITE,
        "confide.dp.accounting.price:price",
        (
            'release.step.pool != "public"',
            '"public" not in (release.step.pool, release.step.tokens)',
        ),
    ),
    slip(
        "private tokens taken for public ones",
        "Exact updates on private tokens cost a secret that the policy catches nothing.",
        INFINITE,
        "confide.dp.accounting.price:price",
        ('release.step.tokens != "public"', 'release.step.tokens == "all"'),
    ),
    slip(
        "a carried state is free",
        "Public text is read in the state that private text left behind, and the certificate does "
        "not mind.",
        INFINITE,
        "confide.dp.accounting.price:unbounded",
        ('release.step.state == "carry"', "False"),
    ),
    slip(
        "published training priced",
        "Batches that exact updates have read are priced as if they were secret.",
        INFINITE,
        "confide.dp.accounting.price:unbounded",
        ('"published" in states', "False"),
    ),
    slip(
        "noised states are free",
        "What is released without sampling, such as recurrent states, is left out of the price.",
        FOLLOWS,
        "confide.dp.accounting.price:mechanisms_of",
        (
            "release.noisy and release.count",
            "release.noisy and release.count and not isinstance(release, StateRelease)",
        ),
    ),
    slip(
        "points and authors composed",
        "Noise that hid points and noise that hid authors are priced together, as if both hid the "
        "same.",
        INFINITE,
        "confide.dp.accounting.price:unbounded",
        ("len(units) > 1", "False"),
    ),
    slip(
        "one point more is one contribution more",
        "Where noise hides authors, adding a point is priced as adding an author; it replaces his "
        "mean.",
        FOLLOWS,
        "confide.certify.author_claims:author_claims",
        ("spent(facts.price.record)", 'spent(facts.price.record, "add_or_remove")'),
    ),
    slip(
        "missed secrets priced as caught ones",
        "The Bayesian epsilon of selective training is that of a secret that the policy catches.",
        INFINITE,
        "confide.certify.claims:bayesian_epsilon",
        ("facts.price.caught_alone", "False"),
    ),
    slip(
        "unaccounted reads ignored",
        "A tokenizer made of protected text does not spoil the certificate.",
        INFINITE,
        "confide.certify.certificate:unaccounted",
        ('not line["public"]', "False"),
    ),
    slip(
        "reads of a start ignored",
        "A warm start from a model that is not accounted for launders it.",
        INFINITE,
        "confide.certify.certificate:unaccounted",
        (
            (
                '[line for ledger in history for line in ledger.events("read") if not '
                'line["public"]]'
            ),
            (
                '[line for ledger in history[-1:] for line in ledger.events("read") if not '
                'line["public"]]'
            ),
        ),
    ),
    Fault(
        "a ledger cut short",
        "The last epochs of a ledger may be missing: the rest is priced as if it were all.",
        INFINITE,
        both(
            edit(
                "confide.certify.certificate:_ledger",
                ("not ledger.ended()", "False"),
            ),
            edit(
                "confide.certify.certificate:_started",
                ('[line["weights"] for line in ran.events("end")] != [weights]', "False"),
            ),
        ),
    ),
    slip(
        "another policy's recall",
        "The certificate takes what another policy misses, or what was measured on another text, "
        "for its own.",
        INFINITE,
        "confide.certify.certificate:check_measured",
        ("terms[key] != trained_on[key]", "False"),
    ),
    slip(
        "measured with another model",
        "What a policy's model misses counts for another model of that name, which the run had.",
        INFINITE,
        "confide.certify.certificate:check_measured",
        (
            'measured["reads"] != [read for read in reads_of(ran) if read["stage"] in stages]',
            "False",
        ),
    ),
    slip(
        "reads left out",
        "A ledger may leave out what its tokenizer and its policies were made of, where the "
        "settings do, too.",
        INFINITE,
        "confide.certify.certificate:_check_reads",
        ('stage not in {read["stage"] for read in reads}', "False"),
    ),
    slip(
        "misaligned neighbours ignored",
        "That masking one secret changed several points does not spoil the certificate.",
        INFINITE,
        "confide.certify.certificate:unaccounted",
        ('if missed["misaligned"]:\n    ...', "if False:\n    ..."),
    ),
    slip(
        "repeated noise overlooked",
        "The same noise drawn twice does not spoil the certificate.",
        INFINITE,
        "confide.dp.ledger:noise_drawn_twice",
        ("(states, sequences, seeded)", "(sequences, seeded)"),
    ),
    slip(
        "a copy that comes back is free",
        "Masking one copy of a caught secret alone is priced as if all its copies were masked.",
        ONE_COPY,
        "confide.certify.literal:records_changed",
        ("1", "0"),
    ),
    slip(
        "two records priced as one",
        "A missed secret of which one copy alone is masked is priced as one record, though two "
        "change.",
        ONE_COPY,
        "confide.certify.literal:records_changed",
        ("max(2, facts.points_literal)", "1"),
    ),
    slip(
        "copies of a replaced record are forgotten",
        "A record that is replaced is priced alone, though a copy of its text comes back, and one "
        "of what takes its place is masked.",
        ONE_COPY,
        "confide.certify.literal_claims:record_claim",
        ("priced(facts, REPLACED)", "priced(facts, 1)"),
    ),
    slip(
        "bounds rounded to the nearest",
        "A release rounds what the policy misses to the nearest step of its grid, which may lie "
        "below.",
        ROUNDED,
        "confide.certify.rounding:rate_up",
        ("rate >= value", "rate >= 0.8 * value"),
    ),
    slip(
        "altered ledger accepted",
        "Lines of a ledger are not held against their hashes.",
        INFINITE,
        "confide.dp.ledger:Ledger._take",
        ('line["hash"] != digest(content)', "False"),
    ),
]
