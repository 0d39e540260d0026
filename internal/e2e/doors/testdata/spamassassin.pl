# Judges senders by a file of rules, as SpamAssassin, and asks the DNS server at an address:
# reads a sender of the envelope and one of From a line, prints the rules that match.
use strict; use Mail::SpamAssassin; $| = 1;
my ($file, $host, $port) = @ARGV;
open(my $f, '<', $file) or die; my $rules = join('', <$f>);
my $sa = Mail::SpamAssassin->new({ dont_copy_prefs => 1, config_text => <<"END" });
loadplugin Mail::SpamAssassin::Plugin::Check
dns_available yes
rbl_timeout 3 1
dns_server [$host]:$port
always_trust_envelope_sender 1
envelope_sender_header X-Envelope-From
required_score 5
$rules
END
while (my $line = <STDIN>) {
	chomp $line;
	my ($envelope, $from) = split(/ /, $line);
	my $mail = $sa->parse("X-Envelope-From: <$envelope>\nFrom: <$from>\nSubject: x\n\nx\n");
	my $status = $sa->check($mail);
	print $status->is_spam() ? 'spam ' : 'ham ', $status->get_names_of_tests_hit(), "\n";
	$status->finish(); $mail->finish();
}
