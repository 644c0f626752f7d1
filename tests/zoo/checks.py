"""The checks of the bug zoo, by name: functions that pass on the project as it is and raise where
something is wrong.
"""

import audit_checks
import data_checks
import engine_checks
import job_checks
import outward_checks
import price_checks
import promise_checks
import scan_checks
import vouch_checks

CHECKS = {
    check.__name__: check
    for check in (
        engine_checks.clipped_sum_is_that_of_a_loop,
        engine_checks.states_are_reset_as_in_a_loop,
        engine_checks.one_example_moves_the_sum_by_at_most_2c,
        engine_checks.units_are_clipped_whole,
        engine_checks.discrete_updates_are_integers_that_hide_a_unit,
        engine_checks.a_batch_that_does_not_fit_counts_once,
        engine_checks.noise_is_normal_and_drawn_once_per_step,
        engine_checks.public_losses_are_blind_to_private_tokens,
        engine_checks.stored_contributions_never_exceed_c,
        engine_checks.an_example_adds_the_same_in_any_company,
        engine_checks.noise_reaches_as_far_as_a_gaussian,
        engine_checks.every_update_trains,
        job_checks.batches_are_poisson_at_the_recorded_rate,
        job_checks.private_randomness_is_fresh,
        job_checks.updates_are_those_of_the_ledger,
        job_checks.authors_are_drawn_and_clipped_whole,
        job_checks.ledger_prices_what_ran,
        job_checks.states_handed_on_are_clipped_and_in_the_ledger,
        job_checks.resumed_equals_uninterrupted,
        job_checks.one_run_audit_stays_below_the_certificate,
        data_checks.a_secret_that_the_policy_finds_leaves_no_trace,
        data_checks.a_covered_secret_changes_nothing_of_what_is_left,
        data_checks.findings_are_of_the_lists_that_they_name,
        data_checks.a_missed_secret_changes_one_private_point,
        data_checks.a_policy_that_fails_makes_its_text_private,
        data_checks.the_neighbour_test_sees_what_is_missed,
        data_checks.the_miss_rate_is_that_of_the_worst_label,
        data_checks.a_rerun_on_a_neighbour_is_the_same,
        price_checks.epsilon_is_never_below_the_closed_form,
        price_checks.epsilon_is_that_of_published_settings,
        price_checks.groups_cost_what_they_shift,
        price_checks.bounds_are_those_of_the_binomial,
        price_checks.certificate_follows_from_the_ledger,
        price_checks.certificate_is_infinite_where_nothing_holds,
        price_checks.a_ledger_holds_what_its_settings_ask_for,
        price_checks.one_copy_alone_costs_what_comes_back,
        price_checks.released_bounds_are_no_smaller,
        price_checks.advice_rests_on_these_policies,
        scan_checks.only_declared_text_is_public,
        scan_checks.a_secret_is_found_however_it_is_written,
        scan_checks.all_that_is_pushed_is_known,
        scan_checks.what_unfolds_is_bounded,
        vouch_checks.signatures_are_over_payload_and_type,
        vouch_checks.an_attestation_is_of_this_certificate,
        vouch_checks.models_of_one_corpus_cost_what_took_place,
        audit_checks.the_gate_rings_for_what_is_certified_of_these_weights,
        audit_checks.a_claim_is_refuted_as_in_the_closed_form,
        audit_checks.an_audit_rings_as_often_as_it_says,
        audit_checks.intervals_of_rates_cover_them,
        promise_checks.printed_promises_are_no_smaller,
        promise_checks.text_that_may_be_the_same_is_not_apart,
        outward_checks.words_from_outside_stay_words,
        outward_checks.files_from_outside_say_one_thing,
    )
}
