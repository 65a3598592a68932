// Package scenario lists what the end-to-end suite shows, and which local cloud cannot show what. A test that a cloud
// cannot run is in this table with its reason; nothing is passed over in silence.
package scenario

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Clouds are the local clouds that the suite runs on, as ALMANAC_CLOUD names them.
var Clouds = []string{"ministack", "localstack"}

// Scenario is one test of the suite.
type Scenario struct {
	Test string            // the test's function
	Text string            // what it shows
	Not  map[string]string // cloud → why it cannot show it
}

// Table is every scenario, in the order in which people read them.
var Table = []Scenario{
	{Test: "TestADueOccurrenceBecomesOneFileForEachRecipient", Text: "a due occurrence: one file, one mail, one signed webhook; a duplicate tick and message add nothing"},
	{Test: "TestV10APackedFileOfJSONLinesArrivesWhole", Text: "V10: JSON Lines by gzip, attached to a mail and behind a webhook's link, is the recorded file"},
	{Test: "TestADeliveryReadsPostgreSQLAndOutlivesTheRotationOfItsSecret", Text: "a delivery reads a real PostgreSQL over TLS, outlives the rotation of its secret, and stops at a right taken away"},
	{Test: "TestADeliveryAndAMonthAreMadeFromAthena", Text: "a delivery and a month are made from Athena, one query for each, and say what it has cost",
		Not: map[string]string{"localstack": "it has no Athena"}},
	{Test: "TestTwoTicksAtOnceAdmitOnce", Text: "two ticks at once admit once"},
	{Test: "TestTheRuleFiresByItself", Text: "the rule ticks by itself"},
	{Test: "TestWrongSQLFailsAtOnceAndSaysWhy", Text: "wrong SQL fails at once and says why"},
	{Test: "TestAnEmptyResultIsSkippedOrSentByPolicy", Text: "an empty result is skipped or sent, by policy"},
	{Test: "TestASpreadsheetIsAttachedAndOpens", Text: "a spreadsheet is attached to the mail, opens, and shows times by the schedule's zone"},
	{Test: "TestARefusedRecipientIsSkippedAndTheOthersGetTheirs", Text: "a recipient that refuses is skipped, the others get theirs"},
	{Test: "TestV4AGroupsMembersAreThoseOfTheAdmission", Text: "V4: a group's members of the admission get the run; who left is skipped, who came gets the next one"},
	{Test: "TestV19D8APassingRefusalIsTriedAgainUnderTheSameKeyWithEqualBytes", Text: "V19 D8: 503, 429 and 500 are tried again with the same key and bytes"},
	{Test: "TestPausedSchedulesAdmitNothingAndResumeFromTheFuture", Text: "a paused schedule admits nothing and resumes from the future"},
	{Test: "TestV12WhatWasMissedIsCaughtUpByPolicy", Text: "V12: what was missed is caught up: latest, all, none"},
	{Test: "TestIntervalsAndWorkdaysFallDue", Text: "an interval and the last workday of a month fall due"},
	{Test: "TestTheRedButtonHoldsEverythingAndARunIsStopped", Text: "V13, the red button, and a run stopped by hand"},
	{Test: "TestV5FailuresPauseAScheduleAndAreTold", Text: "V5: a first failure, a pause at the limit and a recovery are told once each"},
	{Test: "TestARetryAsNewSendsTheRecordedFileToThoseWhoGotNothing", Text: "retry as new: the recorded file to those who got nothing"},
	{Test: "TestAnUnknownIsResolvedByAPerson", Text: "an unknown is resolved by a person; nothing is sent"},
	{Test: "TestADeadLetterIsRedriven", Text: "a dead letter is redriven by a person"},
	{Test: "TestAListOfFiveHundredAndOneStandsApartAndEachGetsOneRequest", Text: "a list of 501 recipients stands apart, each gets one request"},
	{Test: "TestAnUnknownIsResentByAPersonUnderANewKey", Text: "an unknown is resent by a person, under a new key"},
	{Test: "TestALinkIsTakenBack", Text: "a link is taken back, and its use is on record"},
	{Test: "TestRunNowIsAskedTwiceAndRunsOnce", Text: "run now, asked twice with one key, runs once"},
	{Test: "TestOneClickUnsubscribeHoldsForTheNextRun", Text: "one-click unsubscribe holds for the next run"},
	{Test: "TestALinkIsAliveAndThenExpires", Text: "a link gives the file, expires, and says whom to ask"},
	{Test: "TestS7D9AWorkerKilledBetweenSendAndRecordIsResumed", Text: "S7 D9 V1: a worker killed between send and record is resumed"},
	{Test: "TestASecondMessageWhileAWorkerHoldsTheRunDoesNothing", Text: "a second message while a worker holds the run does nothing"},
	{Test: "TestALostMessageIsFoundByTheSweep", Text: "a lost message is found by the sweep"},
	{Test: "TestAPoisonMessageIsKeptAndNothingElseIsHeldUp", Text: "a poison message is kept, nothing else is held up"},
	{Test: "TestARunThatNeverStartsIsSettled", Text: "a run whose message dies three times is settled"},
	{Test: "TestABounceIsRecordedBesideTheOutcomeAndSuppressesTheAddress", Text: "a bounce stands beside the outcome, the next run passes the address over, a person lifts that"},
	{Test: "TestAMailEventThatNobodyCanReadIsADeadLetter", Text: "a mail event that nobody can read is a dead letter"},
	{Test: "TestN13AClosedMonthIsPublishedInEachModeOnce", Text: "N13: a closed month is planned, generated in chunks or in one pass, validated and published, once"},
	{Test: "TestMonthsBeforeAWorkspacesStartAreSkippedAsPolicy", Text: "months before a workspace's start are skipped, and say why"},
	{Test: "TestTheRuleClaimsMonthsByItself", Text: "the rule claims months by itself"},
	{Test: "TestABackfillOfAYearStaysWithinItsCaps", Text: "a backfill of 72 months never exceeds the owner's caps, watched all the while"},
	{Test: "TestN2TwoDispatchersAtACapClaimOne", Text: "N2: two dispatchers at a cap claim one month"},
	{Test: "TestN6FourFailuresWidenAndTheFourthIsFinal", Text: "N6: three widening delays, the fourth failure is final"},
	{Test: "TestN12AFailedCheckIsAcceptedByItsName", Text: "N12: drift beyond its limit is final until a person accepts the check by name"},
	{Test: "TestN1AMonthIsCancelledInEachState", Text: "N1 N17: cancel in each state stops the job and frees the slot"},
	{Test: "TestN16ARerunAndARollBackAreRefusedWhileAVersionIsUnderWay", Text: "N16: rerun and roll back are refused while a version is under way, and go afterwards"},
	{Test: "TestAStepKilledInGenerateIsResumedAtItsCursor", Text: "a step killed between two chunks goes on at its cursor"},
	{Test: "TestN8ALostStartIsOfferedAgainUnderTheSameName", Text: "N8: a lost start is offered again under the same name"},
	{Test: "TestN7AJobThatClosedBeforeItBeganIsLost", Text: "N7: a job that closed before it began is lost, the next has a new name"},
	{Test: "TestALostSettleIsFoundByTheReconciler", Text: "a lost settle is found by the reconciler"},
	{Test: "TestAnExecutionAbortedByHandIsFoundByTheReconciler", Text: "an execution aborted by hand is found by the reconciler"},
	{Test: "TestN10AMonthIsLateUntilItIsPublished", Text: "N10: a month is late until it is published, whatever a backfill does"},
	{Test: "TestAPublishedMonthReadByDuckDBIsTheSource", Text: "a published month read by DuckDB has the rows of its source",
		Not: map[string]string{"localstack": "DuckDB comes with the other cloud's Python"}},
	{Test: "TestOnlyThePublicRoutesAnswerWithoutAToken", Text: "only the public routes answer without a token"},
	{Test: "TestATokenThatTheIssuerDidNotGiveIsRefused", Text: "changed, unsigned and foreign tokens are refused"},
	{Test: "TestTheSignInPageGivesACodeThatItsVerifierProves", Text: "the sign-in page: code flow with PKCE, a wrong verifier is refused"},
	{Test: "TestARenewedSignInKeepsItsRights", Text: "a sign-in is renewed without its password and keeps its rights"},
	{Test: "TestEachFunctionIsDeniedWhatItMustNotDo", Text: "each function's role is denied what it must not do",
		Not: map[string]string{"localstack": "it enforces no IAM policies"}},
}

// Find is the scenario of a test.
func Find(test string) (Scenario, bool) {
	i := slices.IndexFunc(Table, func(s Scenario) bool { return s.Test == test })
	if i < 0 {
		return Scenario{}, false
	}
	return Table[i], true
}

// Outcome is how a scenario went on a cloud.
type Outcome string

const (
	OK     Outcome = "ok"
	Failed Outcome = "failed"
	Absent Outcome = "not on this cloud"
)

// Row is one line of the file that the suite writes.
type Row struct {
	Cloud   string  `json:"cloud"`
	Test    string  `json:"test"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // of Absent
}

// Write appends a row as one line.
func Write(w io.Writer, r Row) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Read reads what Write wrote.
func Read(r io.Reader) ([]Row, error) {
	var rows []Row
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var row Row
		d := json.NewDecoder(strings.NewReader(lines.Text()))
		d.DisallowUnknownFields()
		if err := d.Decode(&row); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err := row.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rows = append(rows, row)
	}
	return rows, lines.Err()
}

func (r Row) check() error {
	s, known := Find(r.Test)
	switch {
	case !slices.Contains(Clouds, r.Cloud):
		return fmt.Errorf("cloud is %q; want one of %s", r.Cloud, strings.Join(Clouds, ", "))
	case !known:
		return fmt.Errorf("test is %q, which the table of scenarios does not list", r.Test)
	case r.Outcome != OK && r.Outcome != Failed && r.Outcome != Absent:
		return fmt.Errorf("outcome of %s is %q; want %q, %q or %q", r.Test, r.Outcome, OK, Failed, Absent)
	case r.Outcome == Absent && r.Reason != s.Not[r.Cloud] || (r.Outcome == Absent) != (s.Not[r.Cloud] != ""):
		return fmt.Errorf("outcome of %s on %s is %q, reason %q; the table of scenarios says %q", r.Test, r.Cloud, r.Outcome, r.Reason, s.Not[r.Cloud])
	}
	return nil
}

// Print writes the table scenario × cloud, and returns what keeps it from being complete: failures, and rows that
// nobody wrote.
func Print(w io.Writer, clouds []string, rows []Row) (problems []string) {
	at := map[[2]string]Row{}
	for _, r := range rows {
		key := [2]string{r.Test, r.Cloud}
		if old, twice := at[key]; twice && old.Outcome == Failed {
			continue // of two runs the worse counts
		}
		at[key] = r
	}
	width := 0
	for _, s := range Table {
		width = max(width, len([]rune(s.Text)))
	}
	line := func(cells ...string) {
		fmt.Fprintf(w, "%s%s  %s\n", cells[0], strings.Repeat(" ", width-len([]rune(cells[0]))), strings.TrimRight(strings.Join(pad(cells[1:]), "  "), " "))
	}
	line(append([]string{"scenario"}, clouds...)...)
	for _, s := range Table {
		cells := []string{s.Text}
		for _, c := range clouds {
			r, ran := at[[2]string{s.Test, c}]
			cell := string(r.Outcome)
			switch {
			case !ran:
				cell = "DID NOT RUN"
				problems = append(problems, fmt.Sprintf("%s did not run on %s", s.Test, c))
			case r.Outcome == Failed:
				cell = "FAILED"
				problems = append(problems, fmt.Sprintf("%s failed on %s", s.Test, c))
			case r.Outcome == Absent:
				cell += ": " + r.Reason
			}
			cells = append(cells, cell)
		}
		line(cells...)
	}
	return problems
}

// pad gives every cell but the last the width of the longest usual word.
func pad(cells []string) []string {
	out := slices.Clone(cells)
	for i := range out[:len(out)-1] {
		out[i] = fmt.Sprintf("%-11s", out[i])
	}
	return out
}
