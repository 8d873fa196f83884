(* What the obligations of posref need beyond Coq's real numbers: finite sums, and complex numbers as pairs. *)

Require Import Reals Lra.
Open Scope R_scope.

Fixpoint sum (f : nat -> R) (n : nat) : R :=
  match n with O => 0 | S m => sum f m + f m end.

Lemma sum_plus : forall f g n, sum (fun j => f j + g j) n = sum f n + sum g n.
Proof. intros f g n; induction n as [|n IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma sum_scal : forall c f n, sum (fun j => c * f j) n = c * sum f n.
Proof. intros c f n; induction n as [|n IH]; simpl; [ring | rewrite IH; ring]. Qed.

Lemma sum_same : forall f g n, (forall j, f j = g j) -> sum f n = sum g n.
Proof. intros f g n same; induction n as [|n IH]; simpl; [reflexivity | rewrite IH, same; reflexivity]. Qed.

Lemma sum_const : forall c n, sum (fun _ => c) n = INR n * c.
Proof.
  intros c n; induction n as [|n IH]; [simpl; ring |].
  change (sum (fun _ => c) (S n)) with (sum (fun _ => c) n + c). rewrite IH, S_INR; ring.
Qed.

(* All terms are one number, so the sum is as often this number as there are terms. *)
Lemma sum_cancels : forall p f n, INR n <> 0 -> (forall j, f j = - p / INR n) -> p + sum f n = 0.
Proof. intros p f n some same; rewrite (sum_same f (fun _ => - p / INR n) n same), sum_const; field; exact some. Qed.

Lemma size_is_not_0 : forall n, (1 <= n)%nat -> INR n <> 0.
Proof. intros n some; apply not_0_INR; intro none; rewrite none in some; inversion some. Qed.

Lemma size_is_positive : forall n, (1 <= n)%nat -> 0 < INR n.
Proof. intros n some; apply lt_0_INR; exact some. Qed.

Lemma sum_is_positive : forall f n, (1 <= n)%nat -> (forall j, 0 < f j) -> 0 < sum f n.
Proof.
  intros f n some positive; induction some as [|n some IH]; simpl; [rewrite Rplus_0_l; apply positive |].
  apply Rplus_lt_0_compat; [exact IH | apply positive].
Qed.

Lemma squares : forall x, sin x * sin x = 1 - cos x * cos x.
Proof. intro x; pose proof (sin2_cos2 x) as one; unfold Rsqr in one; lra. Qed.

Record C := complex { re : R; im : R }.

Definition real (x : R) : C := complex x 0.
Definition unit : C := complex 0 1.
Definition plus (x y : C) : C := complex (re x + re y) (im x + im y).
Definition times (x y : C) : C := complex (re x * re y - im x * im y) (re x * im y + im x * re y).
Definition exponential (z : C) : C := complex (exp (re z) * cos (im z)) (exp (re z) * sin (im z)).

Lemma same_parts : forall x y, re x = re y -> im x = im y -> x = y.
Proof. intros [a b] [c d]; simpl; intros first second; rewrite first, second; reflexivity. Qed.

Lemma euler : forall z a, z = times unit (real a) -> exponential z = complex (cos a) (sin a).
Proof.
  intros z a turned; rewrite turned; unfold exponential, times, unit, real; simpl.
  replace (0 * a - 1 * 0) with 0 by ring. replace (0 * 0 + 1 * a) with a by ring. rewrite exp_0; f_equal; ring.
Qed.

Ltac positive :=
  repeat first
    [ assumption | apply exp_pos | apply Rinv_0_lt_compat | apply Rmult_lt_0_compat | apply Rplus_lt_0_compat
    | apply pow_lt | apply size_is_positive | apply sum_is_positive; [assumption | intro] | lra ].

Ltac denominators :=
  repeat split;
  first [ assumption | apply size_is_not_0; assumption | apply Rgt_not_eq; apply Rlt_gt; solve [positive] | lra ].

Ltac expanded :=
  repeat first
    [ rewrite cos_plus | rewrite sin_plus | rewrite cos_neg | rewrite sin_neg | rewrite exp_plus | rewrite exp_Ropp ].
