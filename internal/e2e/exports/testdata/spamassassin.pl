# Judges senders by a file of settings, as SpamAssassin: reads a sender a line.
use strict; use Mail::SpamAssassin; $| = 1;
open(my $f, '<', $ARGV[0]) or die; my $lists = join('', <$f>);
my $sa = Mail::SpamAssassin->new({ dont_copy_prefs => 1, local_tests_only => 1, config_text => <<"END" });
loadplugin Mail::SpamAssassin::Plugin::Check
loadplugin Mail::SpamAssassin::Plugin::WLBLEval
header BLOCKED eval:check_from_in_blocklist()
header WELCOME eval:check_from_in_welcomelist()
score BLOCKED 100
score WELCOME -100
required_score 5
$lists
END
while (my $sender = <STDIN>) {
	chomp $sender;
	my $mail = $sa->parse("From: <$sender>\n\nx\n");
	my $status = $sa->check($mail);
	print $status->is_spam() ? "refused\n" : "accepted\n";
	$status->finish(); $mail->finish();
}
